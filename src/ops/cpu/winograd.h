// Convolutions with 3 x 3 taps in float32, by Winograd's minimal filtering (ops/winograd.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "ops/cpu/blocked_product.h"
#include "ops/cpu/pixel_run.h"
#include "ops/kernels/winograd.h"

namespace braid::ops::cpu {

using at::Tensor;

class Winograd {
 public:
  // weight [O I 3 3] in float32: its points are made here, (m + 2)^2 / 9 times its size.
  Winograd(const Tensor& weight_OI33, const WinogradKernels& kernels);

  // Whether the products that it saves are more than what it makes.
  static bool pays(at::IntArrayRef weight_OIKK, std::int64_t height, std::int64_t width,
                   const WinogradKernels& kernels);

  // Images are made of tiles, of so many rows and columns.
  std::int64_t tile() const { return kernels_.output; }

  // in [I H W] in float32, rows dense, with a pixel around it and kSlack columns on the right:
  // H = rows + 2, W = columns + 2 + kSlack, both of whole tiles. One call at a time: they share
  // the memory of their tiles.
  void convolve(const Tensor& in_IHW, const PutPixels& put);

 private:
  struct Chunk;

  void enter(const Tensor& in_IHW, const Chunk& chunk) const;
  void multiply(const Chunk& chunk) const;
  void leave(const Chunk& chunk, const PutPixels& put) const;

  const WinogradKernels& kernels_;
  std::int64_t outputs_, inputs_, point_stride_;
  Buffer<float> taps_;  // of each point [O I]
  std::optional<Buffer<float>> entered_, sums_;
  std::int64_t panels_ = 0;  // that have a place in these
};

}  // namespace braid::ops::cpu
