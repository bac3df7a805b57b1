#include "ops/image.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "ops/cpu/image.h"

namespace braid::ops {

namespace reference {

Tensor convolve(const Tensor& x, const Convolution& c) {
  return at::conv2d(x, c.weight_OIKK, c.bias_O, {c.stride, c.stride},
                    at::IntArrayRef{c.padding, c.padding});
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
  auto y = reference::convolve(at::silu_(normed), conv);
  if (!residual) return y;
  check(residual->x_BCHW.sizes() == y.sizes(), "an image of shape ", residual->x_BCHW.sizes(),
        " cannot be added to one of shape ", y.sizes());
  return y.add_(residual->x_BCHW);
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

}  // namespace braid::ops
