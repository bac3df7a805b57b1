#include <ATen/ATen.h>

#include "ops/ops.h"

namespace braid::ops {

Tensor linear(const Tensor& x, const Tensor& weight_NC, const std::optional<Tensor>& bias_N) {
  return at::linear(x, weight_NC, bias_N);
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight_NC, const std::optional<Tensor>& bias_N) {
  auto y = at::linear(x, weight_NC, bias_N);
  return at::gelu_(y, "tanh");
}

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m) {
  auto normed = at::layer_norm(x_BLC, {x_BLC.size(-1)}, {}, {}, 1e-6);
  return normed.mul_(1 + m.scale).add_(m.shift);
}

Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  auto sum = (gate_B1C * y_BLC).add_(residual_BLC);
  return sum.scalar_type() == at::kHalf ? sum.clamp_(-65504, 65504) : sum;
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return at::rms_norm(x, {x.size(-1)}, weight, eps);
}

Tensor rotate(const Tensor& x_BLHD, const Rope& rope) {
  const auto pairs = x_BLHD.to(at::kFloat).unflatten(-1, {-1, 2});
  const auto turned = at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
  const auto cos_L1D = rope.cos.unsqueeze(1), sin_L1D = rope.sin.unsqueeze(1);
  return (pairs.flatten(-2) * cos_L1D + turned * sin_L1D).to(x_BLHD.scalar_type());
}

Tensor attention(const Tensor& q_BHLD, const Tensor& k_BHLD, const Tensor& v_BHLD) {
  return at::scaled_dot_product_attention(q_BHLD, k_BHLD, v_BHLD);
}

}  // namespace braid::ops
