// 3 x 3 convolutions in bfloat16, by kernels that gather a panel's words (Intel AMX). An image
// whose channels are interleaved in pairs serves directly as a panel, once per tap: only these
// pairs are copied.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "ops/cpu/blocked_product.h"
#include "ops/cpu/pixel_run.h"
#include "ops/kernels/products.h"

namespace braid::ops::cpu {

using at::Tensor;

class TiledConvolution {
 public:
  // weight [O I 3 3] in bfloat16; `kernels` must have multiply_gathered.
  TiledConvolution(const Tensor& weight_OI33, const ProductKernels& kernels);

  static bool pays(at::IntArrayRef weight_OIKK, const ProductKernels& kernels);

  // in [I H W] in bfloat16, dense rows, padded by one pixel: H = rows + 2, W = columns + 2, columns
  // in whole panels. One call at a time: calls share the memory of the pairs.
  void convolve(const Tensor& in_IHW, const PutPixels& put);

 private:
  struct Image;
  struct Task;

  std::int64_t chunk_words(std::int64_t word) const;
  float* taps_at(std::int64_t word, std::int64_t output) const;
  void enter_taps(const Tensor& weight_OI33) const;
  void enter(const Tensor& in_IHW, const Image& image) const;
  std::vector<std::int64_t> runs_of(const Image& image, std::int64_t word) const;
  void run(const Task& task, const Image& image, float* sums, const PutPixels& put) const;

  const ProductKernels& kernels_;
  std::int64_t outputs_, inputs_, words_;  // words: pairs of inputs, padded to whole runs
  Buffer<float> taps_;                     // per chunk of words: [O 9 words]
  std::optional<Buffer<float>> pairs_;
  std::int64_t num_pairs_ = 0;  // capacity of pairs_
};

}  // namespace braid::ops::cpu
