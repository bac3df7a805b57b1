// 3 x 3 convolutions in float32, by Winograd's minimal filtering (ops/kernels/winograd.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

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

  // Rows are computed in multiples of this.
  std::int64_t tile() const { return kernels_.output; }

  struct Image {
    std::int64_t height, width;  // zeros are around it
    TakePixels take;
    PrefetchPixels prefetch = {};  // if pixels may not be in the caches
  };
  struct Result {
    PutPixels put;
    PrefetchPixels prefetch = {};
  };
  // Convolves some rows of an image; they begin with a whole tile. Pixels are taken more than once.
  // One call at a time: calls share their threads' memory.
  void convolve(const Image& image, Range rows, const Result& result);

 private:
  struct Chunk;
  struct Workspace;

  void enter(const Image& image, const Chunk& chunk, const Workspace& space) const;
  void multiply(const Chunk& chunk, const Workspace& space) const;
  void leave(const Chunk& chunk, const Workspace& space, const Result& result) const;
  std::int64_t channel_stride() const;
  float* points_of(const Workspace& space, std::int64_t panel, std::int64_t channel) const;

  const WinogradKernels& kernels_;
  std::int64_t outputs_, inputs_, point_stride_;
  Buffer<float> taps_;                              // per point, for each `rows` outputs: [I rows]
  std::vector<std::shared_ptr<Workspace>> spaces_;  // per thread
};

}  // namespace braid::ops::cpu
