#include "ops/image.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "ops/cpu/image.h"

namespace braid::ops {

namespace {

// The lengths [B 1 H W] of all pixels' vectors. A CPU sums channel by channel: LibTorch's norm goes
// pixel by pixel and takes 28 times as long for 8 channels, 6 times for 96.
Tensor pixel_lengths(const Tensor& x, at::ScalarType dtype) {
  if (!x.is_cpu()) return at::linalg_vector_norm(x, 2, {1}, /*keepdim=*/true, dtype);
  auto squares = at::zeros({x.size(0), 1, x.size(2), x.size(3)}, x.options().dtype(dtype));
  for (std::int64_t c = 0; c < x.size(1); ++c) {
    const auto channel = x.narrow(1, c, 1).to(dtype);
    squares.addcmul_(channel, channel);
  }
  return squares.sqrt_();
}

Tensor wide_pixel_norm(const Tensor& x, const PixelNormParts& norm) {
  const auto length = pixel_lengths(x, at::promote_types(x.scalar_type(), at::kFloat));
  auto y = x / length.clamp_min(PixelNormParts::kShortest);
  return y.mul_(std::sqrt(double(x.size(1)))).mul_(norm.gamma_C.view({-1, 1, 1}));
}

}  // namespace

Tensor pixel_norm(const Tensor& x, const PixelNormParts& norm) {
  return wide_pixel_norm(x, norm).to(x.scalar_type());
}

namespace reference {
namespace {

Tensor convolve_activated(const Tensor& activated, const Convolution& conv,
                          const std::optional<ImageResidual>& residual) {
  auto y = reference::convolve(activated, conv);
  if (!residual) return y;
  check(residual->x_BCHW.sizes() == y.sizes(), "an image of shape ", residual->x_BCHW.sizes(),
        " cannot be added to one of shape ", y.sizes());
  return y.add_(residual->x_BCHW);
}

}  // namespace

// LibTorch on CPUs with Intel AMX leaves most rows of a strided convolution in bfloat16 unwritten
// where the result has one column (oneDNN of LibTorch 2.14.1). More zeros on the right make two.
Tensor convolve_padded(const Tensor& x, const Convolution& c, at::IntArrayRef padding) {
  const auto convolved = [&](const Tensor& in) {
    return at::conv2d(in, c.weight_OIKK, c.bias_O, {c.stride, c.stride}, padding);
  };
  const auto steps = x.size(3) + 2 * padding[1] - c.weight_OIKK.size(3);
  const bool is_column = c.stride > 1 && steps >= 0 && steps < c.stride;
  const bool is_left_unwritten = x.is_cpu() && x.element_size() < 4 && is_column;
  if (!is_left_unwritten) return convolved(x);
  return convolved(at::constant_pad_nd(x, {0, c.stride})).narrow(3, 0, 1);
}

Tensor convolve(const Tensor& x, const Convolution& c) {
  return convolve_padded(x, c, {c.padding, c.padding});
}

Tensor convolve_doubled(const Tensor& x, const Convolution& conv) {
  return reference::convolve(at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}), conv);
}

Tensor convolve_halved(const Tensor& x, const Convolution& conv) {
  return reference::convolve(at::constant_pad_nd(x, {0, 1, 0, 1}), conv);
}

Tensor convolve_normed(Tensor x, const GroupNormParts& n, const Convolution& conv,
                       const std::optional<ImageResidual>& residual) {
  auto normed = at::group_norm(x, n.groups, n.weight_C, n.bias_C, n.eps);
  x.reset();
  return convolve_activated(at::silu_(normed), conv, residual);
}

Tensor convolve_normed(Tensor x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual) {
  auto normed = wide_pixel_norm(x, norm);
  const auto activated = at::silu_(normed).to(x.scalar_type());
  x.reset();
  return convolve_activated(activated, conv, residual);
}

}  // namespace reference

Tensor convolve(const Tensor& x, const Convolution& conv) {
  return cpu::convolves(x, conv) ? cpu::convolve(x, conv) : reference::convolve(x, conv);
}

Tensor convolve_doubled(const Tensor& x, const Convolution& conv) {
  return cpu::convolves(x, conv) ? cpu::convolve_doubled(x, conv)
                                 : reference::convolve_doubled(x, conv);
}

Tensor convolve_halved(const Tensor& x, const Convolution& conv) {
  return cpu::halves(x, conv) ? cpu::convolve_halved(x, conv) : reference::convolve_halved(x, conv);
}

Tensor convolve_normed(Tensor x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual) {
  if (cpu::convolves(x, conv)) return cpu::convolve_normed(x, norm, conv, residual);
  return reference::convolve_normed(std::move(x), norm, conv, residual);
}

Tensor convolve_normed(Tensor x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual) {
  if (cpu::convolves(x, conv)) return cpu::convolve_normed(x, norm, conv, residual);
  return reference::convolve_normed(std::move(x), norm, conv, residual);
}

}  // namespace braid::ops
