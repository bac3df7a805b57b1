// A norm over each pixel's channels on a CPU, of one image, some rows at a time.
#pragma once

#include <memory>
#include <vector>

#include "ops/cpu/pixel_run.h"
#include "ops/cpu/tensor_rows.h"
#include "ops/image.h"

namespace braid::ops::cpu {

// A number of channel c of the normed image is x / lengths_HW * scales[c].
struct PixelScales {
  Tensor lengths_HW;  // float32, no zeros
  std::vector<float> scales;
};

// `x_CHW` is float32 or bfloat16, with dense rows.
PixelScales pixel_scales_of(const Tensor& x_CHW, const PixelNormParts& norm);

// silu() of the normed rows, into `to_CHW` of their size, in the same dtype or float32.
void make_normed_rows(const Tensor& x_CHW, const PixelScales& scales, RowRange rows,
                      const Tensor& to_CHW);

// silu() of the normed image, run by run.
TakePixels take_normed(const Tensor& x_CHW, std::shared_ptr<const PixelScales> scales);

}  // namespace braid::ops::cpu
