// Convolutions in bfloat16 by products of pairs, at any stride: an image's pixels are gathered into
// panels, one task's at a time. For convolutions that Winograd's filtering does not do.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/cpu/blocked_product.h"
#include "ops/cpu/pixel_run.h"
#include "ops/kernels/products.h"

namespace braid::ops::cpu {

using at::Tensor;

class PairConvolution {
 public:
  // weight [O I K K] in bfloat16; `kernels` must multiply pairs and read x where it is stored.
  PairConvolution(const Tensor& weight_OIKK, std::int64_t stride, const ProductKernels& kernels);

  static bool pays(at::IntArrayRef weight_OIKK, const ProductKernels& kernels);

  // in [I H W] in bfloat16, dense rows, padded; H >= stride (rows - 1) + K and W >= stride columns
  // + K - 1, one more than is multiplied at stride 2.
  void convolve(const Tensor& in_IHW, const PutPixels& put) const;

 private:
  struct Image;

  void enter_taps(const Tensor& weight_OIKK) const;
  void pack(const Image& image, Range pixels, Range numbers, float* panel) const;

  const ProductKernels& kernels_;
  std::int64_t outputs_, inputs_, kernel_, stride_;
  std::int64_t pairs_, words_;  // of inputs; for all taps
  Buffer<float> taps_;          // [O words]
};

}  // namespace braid::ops::cpu
