#include "models/krea2/blocks.h"

#include <ATen/ATen.h>

#include <array>

namespace braid {

Tensor load_krea2_norm(const Weights& w, std::int64_t width) {
  return w.as(at::kFloat).tensor("weight", {width});
}

Krea2Attention::Krea2Attention(const Weights& w, const Krea2Widths& c, double norm_eps)
    : qg_(w / "qg", {.in = c.hidden, .out = 2 * c.hidden, .bias = Bias::kNo}),
      kv_(w / "kv", {.in = c.hidden, .out = 2 * c.kv_width(), .bias = Bias::kNo}),
      q_norm_D_(load_krea2_norm(w / "norm_q", c.head_width())),
      k_norm_D_(load_krea2_norm(w / "norm_k", c.head_width())),
      out_(w / "out", {.in = c.hidden, .out = c.hidden, .bias = Bias::kNo}),
      head_width_(c.head_width()),
      norm_eps_(norm_eps) {}

Tensor Krea2Attention::normed(const Tensor& x_BLHD, const Tensor& weight_D,
                              const Rope* rope) const {
  if (!rope) return ops::zero_centred_rms_norm(x_BLHD, weight_D, norm_eps_);
  return ops::normed_rotated(std::array{ops::NormedHeads{x_BLHD, weight_D + 1}}, norm_eps_, *rope);
}

Tensor Krea2Attention::attended(const Tensor& x_BLC, const Rope* rope, const Attend& attend) const {
  const auto qg = qg_(x_BLC).chunk(2, -1), kv = kv_(x_BLC).chunk(2, -1);
  const auto q = normed(split_heads(qg[0], head_width_), q_norm_D_, rope);
  const auto k = normed(split_heads(kv[0], head_width_), k_norm_D_, rope);
  const auto attended = attend_tokens(attend, q, k, split_heads(kv[1], head_width_));
  return ops::sigmoid_gated(attended, qg[1]);
}

Krea2Mlp::Krea2Mlp(const Weights& w, const Krea2Widths& c)
    : gate_up_(w / "gate_up", {.in = c.hidden, .out = 2 * c.mlp_hidden, .bias = Bias::kNo}),
      out_(w / "down", {.in = c.mlp_hidden, .out = c.hidden, .bias = Bias::kNo}) {}

Tensor Krea2Mlp::activated(const Tensor& x_BLC) const {
  const auto halves = gate_up_(x_BLC).chunk(2, -1);
  return ops::swiglu(halves[0], halves[1]);
}

Krea2TextBlock::Krea2TextBlock(const Weights& w, const Krea2Config& c)
    : norm1_C_(load_krea2_norm(w / "norm1", c.text.hidden)),
      attention_(w / "attn", c.text, c.norm_eps),
      norm2_C_(load_krea2_norm(w / "norm2", c.text.hidden)),
      mlp_(w / "mlp", c.text),
      norm_eps_(c.norm_eps) {}

Tensor Krea2TextBlock::operator()(const Tensor& x_BLC, const Attend& attend) const {
  const auto normed = ops::zero_centred_rms_norm(x_BLC, norm1_C_, norm_eps_);
  const auto x = x_BLC + attention_.out()(attention_.attended(normed, nullptr, attend));
  return x + mlp_.out()(mlp_.activated(ops::zero_centred_rms_norm(x, norm2_C_, norm_eps_)));
}

Krea2Block::Krea2Block(const Weights& w, const Krea2Config& c)
    : table_VC_(w.tensor("scale_shift_table", {6, c.image.hidden})),
      norm1_C_(load_krea2_norm(w / "norm1", c.image.hidden)),
      attention_(w / "attn", c.image, c.norm_eps),
      norm2_C_(load_krea2_norm(w / "norm2", c.image.hidden)),
      mlp_(w / "mlp", c.image),
      norm_eps_(c.norm_eps) {}

Tensor Krea2Block::operator()(const Tensor& x_BLC, const Tensor& vectors_BVC, const Rope& rope,
                              const Attend& attend) const {
  const auto parts = (vectors_BVC + table_VC_).chunk(6, 1);
  const Modulation before_attention{.shift = parts[1], .scale = parts[0], .gate = parts[2]},
      before_mlp{.shift = parts[4], .scale = parts[3], .gate = parts[5]};
  // Nothing that attention made is alive in the MLP, the widest place.
  const auto x = attention_.out().gated_residual(
      x_BLC, before_attention.gate,
      attention_.attended(ops::modulated_rms_norm(x_BLC, norm1_C_, before_attention, norm_eps_),
                          &rope, attend));
  return mlp_.out().gated_residual(
      x, before_mlp.gate,
      mlp_.activated(ops::modulated_rms_norm(x, norm2_C_, before_mlp, norm_eps_)));
}

}  // namespace braid
