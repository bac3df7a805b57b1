// The innermost loops of convolutions with 3 x 3 taps by Winograd's minimal filtering (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). Compiled once for each
// instruction set; see rows.cc for why nothing else is in those files.
//
// F(m x m, 3 x 3): an image falls into tiles of m x m pixels. A tile and the pixels around it,
// (m + 2) x (m + 2), become as many `points`, the taps too, and at each point the sum over channels
// of their products is a matrix product: (m + 2)^2 multiplications for 9 m^2. What a pixel adds to
// others of its tile is rounded, too: an error is as large as the largest pixel there makes it.
#pragma once

#include <cstdint>

namespace braid::ops {

struct ProductKernels;

struct WinogradKernels {
  // Of one channel: the points of `tiles` tiles, those of each point one after the other. Tile t
  // begins, with the pixels around it, at x + offsets[t]; of each row kSlack pixels are read.
  using Enter = void(const float* x, std::int64_t row_stride, const std::int64_t* offsets,
                     float* points, std::int64_t point_stride);
  // Back to pixels: `output` rows of tiles * output pixels.
  using Leave = void(const float* points, std::int64_t point_stride, float* pixels);
  // taps[3 r + s] begins `count` taps of row r and column s.
  using EnterTaps = void(const float* const* taps, std::int64_t count, float* points,
                         std::int64_t point_stride);

  static constexpr int kSlack = 8;

  int output;                      // m
  int points;                      // (m + 2)^2
  int tiles;                       // of a panel: its columns
  const ProductKernels* products;  // multiply_halves() multiplies any floats here
  Enter* enter;
  Leave* leave;
  EnterTaps* enter_taps;
};

// By m: 4 where rounding to bfloat16 follows. 2 is as exact as sums over the taps are, in float32;
// of 4 the error is about ten times that.
enum class WinogradSize { kTwo, kFour };

// The best that this machine can run.
const WinogradKernels& winograd_kernels(WinogradSize size);

// All that it can run, one after the other from number 0, the best last; null after it.
const WinogradKernels* runnable_winograd(int number, WinogradSize size);

}  // namespace braid::ops
