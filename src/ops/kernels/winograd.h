// The innermost loops of 3 x 3 convolutions by Winograd's minimal filtering (Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2016). Compiled once per instruction set; rows.cc
// says why those files contain nothing else.
//
// F(m x m, 3 x 3): an image is divided into tiles of m x m pixels. A tile and its surrounding
// pixels, (m + 2) x (m + 2), are transformed into as many `points`, and so are the taps. At each
// point, the sum of products over channels is a matrix product: (m + 2)^2 multiplications for 9
// m^2. Pixels of a tile share rounding errors, which scale with the largest pixel.
#pragma once

#include <cstdint>

namespace braid::ops {

struct WinogradKernels {
  // Computes one channel's points of `tiles` tiles, [points tiles]. Tile t, with its surrounding
  // pixels, begins at x + offsets[t]; kSlack pixels of each row are read.
  using Enter = void(const float* x, std::int64_t row_stride, const std::int64_t* offsets,
                     float* points);
  // Transforms back to pixels: `output` rows of tiles * output pixels.
  using Leave = void(const float* points, float* pixels);
  // sums[o] [tiles] = taps[c][o] entered[c] [tiles], summed over `depth` channels, for `rows`
  // outputs, at most WinogradKernels::rows. taps: [depth rows].
  using Multiply = void(const float* taps, std::int64_t rows, const float* entered,
                        std::int64_t entered_stride, std::int64_t depth, float* sums,
                        std::int64_t sums_stride);
  // taps[3 r + s] points to `count` taps of row r and column s.
  using EnterTaps = void(const float* const* taps, std::int64_t count, float* points,
                         std::int64_t point_stride);

  static constexpr int kSlack = 8;

  int output;  // m
  int points;  // (m + 2)^2
  int tiles;   // per panel
  int rows;    // outputs per call of Multiply
  Enter* enter;
  Multiply* multiply;
  Leave* leave;
  EnterTaps* enter_taps;
};

// Sizes are named by m. Two is as exact as summing over the taps in float32; the errors of Four and
// Six are some ten times larger, and disappear if the result is rounded to bfloat16.
enum class WinogradSize { kTwo, kFour, kSix };

// The best kernels this machine can run.
const WinogradKernels& winograd_kernels(WinogradSize size);

// Kernels this machine can run, numbered from 0, the best last; null past it.
const WinogradKernels* runnable_winograd(int number, WinogradSize size);

}  // namespace braid::ops
