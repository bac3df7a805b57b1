// Convolutions on CPUs in bands of rows. A convolution's input (normed, doubled or widened) is
// computed for some rows at a time and stays in the caches; only its result is written. Group norm
// uses the whole image's statistics, so bands change nothing.
#pragma once

#include "ops/image.h"

namespace braid::ops::cpu {

// Takes images in host memory, float32 or bfloat16, and convolutions that keep their size. bfloat16
// is widened if the CPU cannot multiply it.
bool convolves(const Tensor& x, const Convolution& conv);
// The same for 3 x 3 convolutions that halve the size.
bool halves(const Tensor& x, const Convolution& conv);

// How much input a convolution reads at once; neighbouring bands both compute the rows at their
// border.
struct Band {
  std::int64_t bytes = 16 << 20, fewest_rows = 8;
};

Tensor convolve(const Tensor& x, const Convolution& conv, Band band = {});
Tensor convolve_doubled(const Tensor& x, const Convolution& conv, Band band = {});
Tensor convolve_halved(const Tensor& x, const Convolution& conv, Band band = {});
Tensor convolve_normed(const Tensor& x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual, Band band = {});
Tensor convolve_normed(const Tensor& x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual, Band band = {});

}  // namespace braid::ops::cpu
