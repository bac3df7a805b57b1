// Input and output of our own convolutions.
#pragma once

#include <cstdint>
#include <functional>

namespace braid::ops::cpu {

// `count` pixels of a channel, starting at (row, column).
struct PixelRun {
  std::int64_t channel, row, column, count;
};

// These are called by several threads at once. Computes a run of the input, inside the image:
using TakePixels = std::function<void(const PixelRun& run, float* to)>;
// Brings what a run is computed from into a core's caches.
using PrefetchPixels = std::function<void(const PixelRun& run)>;
// Receives each pixel of the result once; runs may end beyond the image.
using PutPixels = std::function<void(const PixelRun& run, const float* sums)>;

}  // namespace braid::ops::cpu
