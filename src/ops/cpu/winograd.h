// 3 x 3 convolutions in float32, by Winograd's minimal filtering (ops/kernels/winograd.h).
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
  // weight [O I 3 3] in float32; its points are computed here, (m + 2)^2 / 9 times its size.
  Winograd(const Tensor& weight_OI33, const WinogradKernels& kernels);

  // What an image of this size takes, in products per pair of channels.
  static std::int64_t products(std::int64_t height, std::int64_t width,
                               const WinogradKernels& kernels);

  // Whether the products saved outweigh the cost of the transforms.
  static bool pays(at::IntArrayRef weight_OIKK, std::int64_t height, std::int64_t width,
                   const WinogradKernels& kernels);

  // Images consist of tiles of this many rows and columns.
  std::int64_t tile() const { return kernels_.output; }

  // in [I H W] in float32, dense rows, padded by one pixel and by kSlack columns on the right: H =
  // rows + 2, W = columns + 2 + kSlack, both in whole tiles. One call at a time: calls share the
  // memory of the tiles.
  void convolve(const Tensor& in_IHW, const PutPixels& put);

 private:
  struct Chunk;

  void enter(const Tensor& in_IHW, const Chunk& chunk) const;
  void multiply(const Chunk& chunk) const;
  void leave(const Chunk& chunk, const PutPixels& put) const;

  const WinogradKernels& kernels_;
  std::int64_t outputs_, inputs_, point_stride_;
  Buffer<float> taps_;  // per point [O I]
  std::optional<Buffer<float>> entered_, sums_;
  std::int64_t panels_ = 0;  // capacity of these, in panels
};

}  // namespace braid::ops::cpu
