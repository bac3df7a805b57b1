// What crosses between the GPUs of fake_gpu.cc, and how long it would take. While a Crossings is
// there it notes the copies between GPUs, and what streams wait for.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

namespace braid::fake_gpu {

class Crossings {
 public:
  Crossings();
  ~Crossings();

  std::int64_t bytes() const;
  // The time until all copies are done. A GPU sends one at a time and receives one at a time, a
  // byte per unit of time; computing takes none, and streams keep their order.
  std::int64_t makespan() const;
};

// What the fake GPUs do; nothing without a Crossings.
namespace crossings {

void copy(const c10::Stream& stream, int from, int to, std::int64_t bytes);
void record(const void* event, const c10::Stream& stream);
void wait(const void* event, const c10::Stream& stream);

}  // namespace crossings
}  // namespace braid::fake_gpu
