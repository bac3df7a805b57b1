// Convolutions on CPUs, in bands of rows: what a convolution reads, normed, doubled or widened, is
// made for some rows at a time and stays in the caches; only its result is written. Group norm's
// statistics are those of the whole image, so that bands change nothing.
#pragma once

#include "ops/image.h"

namespace braid::ops::cpu {

// Images in host memory, float32 or bfloat16, and convolutions that keep their size. bfloat16 is
// widened where the CPU cannot multiply it.
bool convolves(const Tensor& x, const Convolution& conv);
// The same for convolutions of 3 x 3 that halve it.
bool halves(const Tensor& x, const Convolution& conv);

// What a convolution reads at once; neighbours make the rows at their border twice.
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
