// What the GPUs of fake_gpu.cc would need events for. While an OrderOfWork is there, it keeps a
// vector clock for the host and every stream, as weights/paging/order_checker.h does for pages, and
// complains of
//
// - work that reads or overwrites memory without being ordered after the work that it depends on;
// - memory given to new work of its stream while another stream may still use what it held before:
//   LibTorch's allocator gives it away as soon as the host frees it, without asking.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <string>
#include <vector>

namespace braid::fake_gpu {

class OrderOfWork {
 public:
  OrderOfWork();
  ~OrderOfWork();

  std::vector<std::string> complaints() const;
  // What streams were given, in the host's order: "record 3", "wait 0", "work 3".
  std::vector<std::string> log() const;
};

// What the fake GPUs do; nothing without an OrderOfWork.
namespace order {

void allocate(const void* memory, std::size_t bytes, const c10::Stream& stream);
void free(const void* memory);
void record(const void* event, const c10::Stream& stream);
void wait(const void* event, const c10::Stream& stream);
void host_waits(const void* event);
void host_waits_for_all();
void work(const c10::Stream& stream);
// Addresses outside of known memory are ignored.
void read(const void* memory, const c10::Stream& stream);
void write(const void* memory, const c10::Stream& stream);

}  // namespace order
}  // namespace braid::fake_gpu
