// How long each operation of an evaluation takes a device, as LibTorch's profiler callbacks tell.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace braid {

struct OpTime {
  std::string name;                 // "braid::linear", "aten::cat"
  std::vector<std::int64_t> sizes;  // of Braid's own operations, see ops/record.h
  double seconds;
};

// While it is there, operations of the thread that made it are noted; those within others are not.
class OpTimes {
 public:
  explicit OpTimes(at::Device device);
  OpTimes(const OpTimes&) = delete;
  OpTimes& operator=(const OpTimes&) = delete;
  ~OpTimes();

  // What was noted since the last call. Waits for the device.
  std::vector<OpTime> take();

 private:
  at::CallbackHandle handle_;
};

}  // namespace braid
