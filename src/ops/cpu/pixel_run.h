// Output of our own convolutions.
#pragma once

#include <cstdint>
#include <functional>

namespace braid::ops::cpu {

// `count` pixels of a channel, starting at (row, column).
struct PixelRun {
  std::int64_t channel, row, column, count;
};

// Called by several threads at once, each for different runs.
using PutPixels = std::function<void(PixelRun run, const float* sums)>;

}  // namespace braid::ops::cpu
