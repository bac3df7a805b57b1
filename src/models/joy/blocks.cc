#include "models/joy/blocks.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr double kNormEps = 1e-6;

Tensor load_table(const Weights& block, const std::string& side, const JoyConfig& c) {
  return (block / (side + "_mod")).tensor("modulate_table", {1, 6, c.hidden});
}

JointSide load_side(const Weights& block, const std::string& side, const JoyConfig& c) {
  const auto attention = block / "attn", mlp = block / (side + "_mlp") / "net";
  return {.qkv = {attention / (side + "_attn_qkv"), {.in = c.hidden, .out = 3 * c.hidden}},
          .proj = {attention / (side + "_attn_proj"), {.in = c.hidden, .out = c.hidden}},
          .mlp_in = {mlp / 0 / "proj", {.in = c.hidden, .out = c.mlp_hidden}},
          .mlp_out = {mlp / 2, {.in = c.mlp_hidden, .out = c.hidden}},
          .q_norm = {attention / (side + "_attn_q_norm"), c.head_width(), kNormEps},
          .k_norm = {attention / (side + "_attn_k_norm"), c.head_width(), kNormEps}};
}

SideModulations modulations_of(const Tensor& vectors_BVC) {
  const auto parts = vectors_BVC.chunk(6, 1);
  return {.attention = {.shift = parts[0], .scale = parts[1], .gate = parts[2]},
          .mlp = {.shift = parts[3], .scale = parts[4], .gate = parts[5]}};
}

}  // namespace

JoyBlock::JoyBlock(const Weights& w, const JoyConfig& c)
    : image_table_1VC_(load_table(w, "img", c)),
      text_table_1VC_(load_table(w, "txt", c)),
      joint_(
          {.image = load_side(w, "img", c), .text = load_side(w.on_second_stream(), "txt", c)},
          {.mlp = JointBlock::Mlp::kGelu, .first = JointBlock::First::kImage, .norm_eps = kNormEps},
          w.second_stream()) {}

JointTokens JoyBlock::operator()(const JointTokens& x, const Tensor& vectors_BVC, const Rope& rope,
                                 const Attend& attend) const {
  const JointModulations modulations{.image = modulations_of(image_table_1VC_ + vectors_BVC),
                                     .text = modulations_of(text_table_1VC_ + vectors_BVC)};
  return joint_(x, modulations, rope, attend);
}

}  // namespace braid
