// The operations of autoencoders, on images [B C H W]; as ops.h otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace braid {

using at::Tensor;

// weight [O I K K], bias [O]; zeros around the image.
struct Convolution {
  Tensor weight_OIKK, bias_O;
  std::int64_t stride = 1, padding = 1;
};

// weight and bias [C]; statistics over each of the groups of channels (Wu and He, 2018).
struct GroupNormParts {
  Tensor weight_C, bias_C;
  std::int64_t groups;
  double eps;
};

// gamma [C]: of each pixel's channels, x / |x| sqrt(C) gamma (Wan Team, 2025).
struct PixelNormParts {
  Tensor gamma_C;
};

// What is added to a convolution, of the same size as its result, which may take its memory.
struct ImageResidual {
  Tensor x_BCHW;
  enum class Memory { kKept, kReused } memory = Memory::kKept;
};

namespace ops {

// x [B I H W] -> [B O H' W'], H' = (H + 2 padding - K) / stride + 1.
Tensor convolve(const Tensor& x, const Convolution& conv);

// convolve() of x with every pixel twice as wide and as high.
Tensor convolve_doubled(const Tensor& x, const Convolution& conv);

// convolve() of x with zeros on the right and below alone, of a convolution of 3 x 3 at stride 2
// without padding: H' = H / 2.
Tensor convolve_halved(const Tensor& x, const Convolution& conv);

// conv(silu(group_norm(x))), and what is added to it. Where x is given away, it is freed early.
Tensor convolve_normed(Tensor x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});
Tensor convolve_normed(Tensor x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});

// Divided in float32; the quotient is rounded to x's dtype, and so is each product.
Tensor pixel_norm(const Tensor& x, const PixelNormParts& norm);

namespace reference {
Tensor convolve(const Tensor& x, const Convolution& conv);
Tensor convolve_doubled(const Tensor& x, const Convolution& conv);
Tensor convolve_halved(const Tensor& x, const Convolution& conv);
Tensor convolve_normed(Tensor x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});
Tensor convolve_normed(Tensor x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});
}  // namespace reference

}  // namespace ops
}  // namespace braid
