// What convolutions of our own give.
#pragma once

#include <cstdint>
#include <functional>

namespace braid::ops::cpu {

// `count` pixels of a channel, from (row, column) on.
struct PixelRun {
  std::int64_t channel, row, column, count;
};

// Called by several threads at once, for other runs each.
using PutPixels = std::function<void(PixelRun run, const float* sums)>;

}  // namespace braid::ops::cpu
