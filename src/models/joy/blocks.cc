#include "models/joy/blocks.h"

#include <ATen/ATen.h>

#include <array>

namespace braid {
namespace {

constexpr double kJoyNormEps = 1e-6;

}  // namespace

JoySide::JoySide(const Weights& block, const std::string& side, const JoyConfig& c)
    : table_1VC_((block / (side + "_mod")).tensor("modulate_table", {1, 6, c.hidden})),
      qkv_(block / "attn" / (side + "_attn_qkv"), {.in = c.hidden, .out = 3 * c.hidden}),
      proj_(block / "attn" / (side + "_attn_proj"), {.in = c.hidden, .out = c.hidden}),
      mlp_in_(block / (side + "_mlp") / "net" / 0 / "proj", {.in = c.hidden, .out = c.mlp_hidden}),
      mlp_out_(block / (side + "_mlp") / "net" / 2, {.in = c.mlp_hidden, .out = c.hidden}),
      q_norm_(block / "attn" / (side + "_attn_q_norm"), c.head_width(), kJoyNormEps),
      k_norm_(block / "attn" / (side + "_attn_k_norm"), c.head_width(), kJoyNormEps),
      head_width_(c.head_width()) {}

JoySide::Modulations JoySide::modulations(const Tensor& vectors_BVC) const {
  const auto parts = (table_1VC_ + vectors_BVC).chunk(6, 1);
  return {.attention = {.shift = parts[0], .scale = parts[1], .gate = parts[2]},
          .mlp = {.shift = parts[3], .scale = parts[4], .gate = parts[5]}};
}

JoySide::Qkv JoySide::project(const Tensor& x_BLC, const Modulation& m) const {
  const auto parts = qkv_(ops::modulated_norm(x_BLC, m)).chunk(3, -1);
  return {.q = {split_heads(parts[0], head_width_), q_norm_.weight()},
          .k = {split_heads(parts[1], head_width_), k_norm_.weight()},
          .v = split_heads(parts[2], head_width_)};
}

Tensor JoySide::widen(const Tensor& x_BLC, const Modulation& m) const {
  return mlp_in_.gelu(ops::modulated_norm(x_BLC, m));
}

JoyBlock::JoyBlock(const Weights& w, const JoyConfig& config)
    : image_(w, "img", config), text_(w, "txt", config) {}

JoyBlock::Tokens JoyBlock::operator()(const Tokens& x, const Tensor& vectors_BVC, const Rope& rope,
                                      const Attend& attend) const {
  const auto of_image = image_.modulations(vectors_BVC), of_text = text_.modulations(vectors_BVC);
  const auto image = image_.project(x.image_BIC, of_image.attention);
  const auto text = text_.project(x.text_BTC, of_text.attention);
  const auto q = ops::normed_rotated(std::array{image.q, text.q}, kJoyNormEps, rope);
  const auto k = ops::normed_rotated(std::array{image.k, text.k}, kJoyNormEps, rope);
  const auto attended = attend_tokens(attend, q, k, at::cat({image.v, text.v}, 1));
  const auto num_image = x.image_BIC.size(1), num_text = x.text_BTC.size(1);
  const auto [image_y, text_y] =
      apply_both(image_.projection(), attended.narrow(1, 0, num_image), text_.projection(),
                 attended.narrow(1, num_image, num_text));
  const auto image_h = ops::gated_residual(x.image_BIC, of_image.attention.gate, image_y);
  const auto text_h = ops::gated_residual(x.text_BTC, of_text.attention.gate, text_y);
  const auto [image_z, text_z] = apply_both(image_.mlp_out(), image_.widen(image_h, of_image.mlp),
                                            text_.mlp_out(), text_.widen(text_h, of_text.mlp));
  return {.image_BIC = ops::gated_residual(image_h, of_image.mlp.gate, image_z),
          .text_BTC = ops::gated_residual(text_h, of_text.mlp.gate, text_z)};
}

}  // namespace braid
