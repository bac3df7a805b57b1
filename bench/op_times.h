// How long each operation of an evaluation takes on a device, from LibTorch's profiler callbacks.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace braid {

struct OpTime {
  std::string name;                 // "braid::linear", "aten::cat"
  std::vector<std::int64_t> sizes;  // for Braid's own operations, see ops/record.h
  double seconds;
};

// While it lives, records operations of the thread that created it, except nested ones.
class OpTimes {
 public:
  explicit OpTimes(at::Device device);
  OpTimes(const OpTimes&) = delete;
  OpTimes& operator=(const OpTimes&) = delete;
  ~OpTimes();

  // What was recorded since the last call. Waits for the device.
  std::vector<OpTime> take();

 private:
  at::CallbackHandle handle_;
};

}  // namespace braid
