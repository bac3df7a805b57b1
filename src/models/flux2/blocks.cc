#include "models/flux2/blocks.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

namespace braid {
namespace {

constexpr double kQkNormEps = 1e-6;

JointSide load_side(const Weights& block, const std::string& side, const Flux2Config& c) {
  const auto attention = block / (side + "_attn"), mlp = block / (side + "_mlp");
  return {.qkv = {attention / "qkv", {.in = c.hidden(), .out = 3 * c.hidden(), .bias = Bias::kNo}},
          .proj = {attention / "proj", {.in = c.hidden(), .out = c.hidden(), .bias = Bias::kNo}},
          .mlp_in = {mlp / "0", {.in = c.hidden(), .out = 2 * c.mlp_hidden, .bias = Bias::kNo}},
          .mlp_out = {mlp / "2", {.in = c.mlp_hidden, .out = c.hidden(), .bias = Bias::kNo}},
          .q_norm = {attention / "norm" / "query_norm", c.head_width, kQkNormEps},
          .k_norm = {attention / "norm" / "key_norm", c.head_width, kQkNormEps}};
}

}  // namespace

Flux2DoubleBlock::Flux2DoubleBlock(const Weights& w, const Flux2Config& c)
    : JointBlock(
          {.image = load_side(w, "img", c), .text = load_side(w.on_second_stream(), "txt", c)},
          {.mlp = Mlp::kSwiglu, .first = First::kText, .norm_eps = kQkNormEps}, w.second_stream()) {
}

Flux2SingleBlock::Flux2SingleBlock(const Weights& w, const Flux2Config& c)
    : in_(w / "linear1",
          {.in = c.hidden(), .out = 3 * c.hidden() + 2 * c.mlp_hidden, .bias = Bias::kNo}),
      out_(w / "linear2", {.in = c.hidden() + c.mlp_hidden, .out = c.hidden(), .bias = Bias::kNo}),
      q_norm_(w / "norm" / "query_norm", c.head_width, kQkNormEps),
      k_norm_(w / "norm" / "key_norm", c.head_width, kQkNormEps),
      head_width_(c.head_width),
      hidden_(c.hidden()),
      mlp_hidden_(c.mlp_hidden) {}

Tensor Flux2SingleBlock::operator()(const Tensor& x_BLC, const Modulation& m, const Rope& rope,
                                    const Attend& attend) const {
  const auto fused = in_(ops::modulated_norm(x_BLC, m, in_.input_form(x_BLC)));
  // [q | k | v | gate | value], whole or a share
  const auto width = fused.size(-1) * hidden_ / (3 * hidden_ + 2 * mlp_hidden_);
  const auto mlp = (fused.size(-1) - 3 * width) / 2;
  const auto parts = fused.split_with_sizes({width, width, width, mlp, mlp}, -1);
  const ops::QueriesKeys heads{{split_heads(parts[0], head_width_), q_norm_.weight()},
                               {split_heads(parts[1], head_width_), k_norm_.weight()}};
  auto attended = attend_tokens(attend, ops::normed_rotated(std::array{heads}, kQkNormEps, rope),
                                split_heads(parts[2], head_width_));
  if (out_.takes_parts(x_BLC))
    return out_.gated_residual(
        x_BLC, m.gate,
        ops::LayerInput::in_parts(std::move(attended), ops::swiglu(parts[3], parts[4])));
  return out_.gated_residual(x_BLC, m.gate, ops::joined_swiglu(attended, parts[3], parts[4]));
}

}  // namespace braid
