#include "ops/image.h"

#include <ATen/ATen.h>

#include "ops/cpu_image.h"

namespace braid::ops {

namespace reference {

Tensor convolve(const Tensor& x, const Convolution& c) {
  return at::conv2d(x, c.weight_OIKK, c.bias_O, {c.stride, c.stride},
                    at::IntArrayRef{c.padding, c.padding});
}

Tensor convolve_doubled(const Tensor& x, const Convolution& conv) {
  return reference::convolve(at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}), conv);
}

Tensor convolve_normed(const Tensor& x, const GroupNormParts& n, const Convolution& conv,
                       const std::optional<ImageResidual>& residual) {
  auto normed = at::group_norm(x, n.groups, n.weight_C, n.bias_C, n.eps);
  auto y = reference::convolve(at::silu_(normed), conv);
  return residual ? y.add_(residual->x_BCHW) : y;
}

}  // namespace reference

Tensor convolve(const Tensor& x, const Convolution& conv) {
  return cpu::convolves(x, conv) ? cpu::convolve(x, conv) : reference::convolve(x, conv);
}

Tensor convolve_doubled(const Tensor& x, const Convolution& conv) {
  return cpu::convolves(x, conv) ? cpu::convolve_doubled(x, conv)
                                 : reference::convolve_doubled(x, conv);
}

Tensor convolve_normed(const Tensor& x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual) {
  return cpu::convolves(x, conv) ? cpu::convolve_normed(x, norm, conv, residual)
                                 : reference::convolve_normed(x, norm, conv, residual);
}

}  // namespace braid::ops
