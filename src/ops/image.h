// Autoencoder operations on images [B C H W]; conventions as in ops.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace braid {

using at::Tensor;

// weight [O I K K], bias [O]; the image is padded with zeros.
struct Convolution {
  Tensor weight_OIKK, bias_O;
  std::int64_t stride = 1, padding = 1;
};

// weight and bias [C]; statistics are per group of channels (Wu and He, 2018).
struct GroupNormParts {
  Tensor weight_C, bias_C;
  std::int64_t groups;
  double eps;
};

// gamma [C]: x / |x| sqrt(C) gamma over each pixel's channels (Wan Team, 2025).
struct PixelNormParts {
  Tensor gamma_C;
  static constexpr double kShortest = 1e-12;  // what |x| is at least taken as
};

// Added to a convolution's result; has its size. The result may reuse its memory.
struct ImageResidual {
  Tensor x_BCHW;
  enum class Memory { kKept, kReused } memory = Memory::kKept;
};

namespace ops {

// x [B I H W] -> [B O H' W'], H' = (H + 2 padding - K) / stride + 1.
Tensor convolve(const Tensor& x, const Convolution& conv);

// convolve() of x upsampled to twice its width and height.
Tensor convolve_doubled(const Tensor& x, const Convolution& conv);

// convolve() of x padded with zeros only on the right and below, for a 3 x 3 convolution at stride
// 2 without padding: H' = H / 2.
Tensor convolve_halved(const Tensor& x, const Convolution& conv);

// conv(silu(group_norm(x))), plus the residual if any. If x is moved in, it is freed early.
Tensor convolve_normed(Tensor x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});
Tensor convolve_normed(Tensor x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});

// Computes in float32 and rounds once to x's dtype. The reference rounds the quotient and both
// products.
Tensor pixel_norm(const Tensor& x, const PixelNormParts& norm);

namespace reference {
Tensor convolve(const Tensor& x, const Convolution& conv);
// The same with these rows and columns of zeros on each side, in place of conv.padding.
Tensor convolve_padded(const Tensor& x, const Convolution& conv, at::IntArrayRef padding);
Tensor convolve_doubled(const Tensor& x, const Convolution& conv);
Tensor convolve_halved(const Tensor& x, const Convolution& conv);
Tensor convolve_normed(Tensor x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});
Tensor convolve_normed(Tensor x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual = {});
}  // namespace reference

}  // namespace ops
}  // namespace braid
