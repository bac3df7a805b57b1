#include "models/zimage/blocks.h"

#include <ATen/ATen.h>

#include <array>

namespace braid {
namespace {

constexpr double kQkNormEps = 1e-5;

std::optional<RmsNorm> head_norm(const Weights& w, const ZImageConfig& c) {
  if (!c.qk_norm) return {};
  return RmsNorm(w, c.head_width(), kQkNormEps);
}

}  // namespace

ZImageBlock::ZImageBlock(const Weights& w, const ZImageConfig& c, Modulated modulated)
    : qkv_(w / "attention" / "qkv", {.in = c.hidden, .out = 3 * c.hidden, .bias = Bias::kNo}),
      out_(w / "attention" / "out", {.in = c.hidden, .out = c.hidden, .bias = Bias::kNo}),
      mlp_in_(w / "feed_forward" / "w13",
              {.in = c.hidden, .out = 2 * c.mlp_hidden(), .bias = Bias::kNo}),
      mlp_out_(w / "feed_forward" / "w2",
               {.in = c.mlp_hidden(), .out = c.hidden, .bias = Bias::kNo}),
      q_norm_(head_norm(w / "attention" / "q_norm", c)),
      k_norm_(head_norm(w / "attention" / "k_norm", c)),
      before_attention_(w / "attention_norm1", c.hidden, c.norm_eps),
      behind_attention_(w / "attention_norm2", c.hidden, c.norm_eps),
      before_mlp_(w / "ffn_norm1", c.hidden, c.norm_eps),
      behind_mlp_(w / "ffn_norm2", c.hidden, c.norm_eps),
      modulated_(modulated),
      head_width_(c.head_width()) {}

ZImageModulator::ZImageModulator(const Weights& w, const ZImageConfig& c)
    : layer_(w / "adaLN_modulation" / 0, {.in = c.condition_width(), .out = 4 * c.hidden}) {}

ZImageBlock::Gains ZImageBlock::gains(const Tensor& x_BLC, const Tensor& modulations_BM) const {
  if (modulated_ == Modulated::kNo) {
    const auto one = at::ones({1, 1, x_BLC.size(-1)}, x_BLC.options());
    return {.attention_scale = one, .attention_gate = one, .mlp_scale = one, .mlp_gate = one};
  }
  const auto parts = modulations_BM.unsqueeze(1).chunk(4, -1);
  return {.attention_scale = 1 + parts[0],
          .attention_gate = parts[1].tanh(),
          .mlp_scale = 1 + parts[2],
          .mlp_gate = parts[3].tanh()};
}

Tensor ZImageBlock::attended(const Tensor& x_BLC, const Rope& rope, const Attend& attend) const {
  const auto parts = qkv_(x_BLC).chunk(3, -1);
  const auto heads = [&](std::size_t part) { return split_heads(parts[part], head_width_); };
  const auto rotated = [&]() -> ops::RotatedHeads {
    if (!q_norm_) return {ops::rotate(heads(0), rope), ops::rotate(heads(1), rope)};
    const ops::QueriesKeys both{{heads(0), q_norm_->weight()}, {heads(1), k_norm_->weight()}};
    return ops::normed_rotated(std::array{both}, kQkNormEps, rope);
  };
  return out_(attend_tokens(attend, rotated(), heads(2)));
}

Tensor ZImageBlock::activated(const Tensor& x_BLC) const {
  const auto halves = mlp_in_(x_BLC).chunk(2, -1);
  return ops::swiglu(halves[0], halves[1]);
}

Tensor ZImageBlock::operator()(const Tensor& x_BLC, const Tensor& modulations_BM, const Rope& rope,
                               const Attend& attend) const {
  const auto g = gains(x_BLC, modulations_BM);
  const auto scaled = [](const LlamaRmsNorm& norm, const Tensor& x_BLC, const Tensor& scale) {
    return norm(x_BLC) * scale;
  };
  // Nothing that attention made is alive in the MLP, the widest place.
  const auto x =
      ops::gated_residual(x_BLC, g.attention_gate,
                          behind_attention_(attended(
                              scaled(before_attention_, x_BLC, g.attention_scale), rope, attend)));
  return ops::gated_residual(x, g.mlp_gate,
                             behind_mlp_(mlp_out_(activated(scaled(before_mlp_, x, g.mlp_scale)))));
}

}  // namespace braid
