#include "models/flux/blocks.h"

#include <ATen/ATen.h>

#include <array>

namespace braid {
namespace {

constexpr double kQkNormEps = 1e-6;

}  // namespace

std::vector<Modulation> split_modulations(const Tensor& packed_BC, std::int64_t n) {
  const auto parts = packed_BC.unsqueeze(1).chunk(3 * n, -1);
  std::vector<Modulation> out;
  for (std::size_t i = 0; i < parts.size(); i += 3)
    out.push_back({.shift = parts[i], .scale = parts[i + 1], .gate = parts[i + 2]});
  return out;
}

FluxSide::FluxSide(const Weights& block, const std::string& side, const FluxConfig& c)
    : qkv_(block / (side + "_attn") / "qkv", {.in = c.hidden(), .out = 3 * c.hidden()}),
      proj_(block / (side + "_attn") / "proj", {.in = c.hidden(), .out = c.hidden()}),
      mlp_in_(block / (side + "_mlp") / "0", {.in = c.hidden(), .out = c.mlp_hidden()}),
      mlp_out_(block / (side + "_mlp") / "2", {.in = c.mlp_hidden(), .out = c.hidden()}),
      q_norm_(block / (side + "_attn") / "norm" / "query_norm", c.head_width, kQkNormEps),
      k_norm_(block / (side + "_attn") / "norm" / "key_norm", c.head_width, kQkNormEps),
      head_width_(c.head_width) {}

FluxSide::Qkv FluxSide::project(const Tensor& x_BLC, const Modulation& m) const {
  const auto parts = qkv_(ops::modulated_norm(x_BLC, m)).chunk(3, -1);
  return {.q = {split_heads(parts[0], head_width_), q_norm_.weight()},
          .k = {split_heads(parts[1], head_width_), k_norm_.weight()},
          .v = split_heads(parts[2], head_width_)};
}

Tensor FluxSide::widen(const Tensor& x_BLC, const Modulation& m) const {
  return mlp_in_.gelu(ops::modulated_norm(x_BLC, m));
}

FluxDoubleBlock::FluxDoubleBlock(const Weights& w, const FluxConfig& config)
    : image_(w, "img", config), text_(w, "txt", config) {}

// The attended tokens of both sides, not yet projected.
FluxDoubleBlock::Tokens FluxDoubleBlock::attend(const Tokens& x,
                                                const FluxSide::Modulations& image_mod,
                                                const FluxSide::Modulations& text_mod,
                                                const Rope& rope, const Attend& attend) const {
  const auto image = image_.project(x.image_BIC, image_mod.attention);
  const auto text = text_.project(x.text_BTC, text_mod.attention);
  const auto q = ops::normed_rotated(std::array{text.q, image.q}, kQkNormEps, rope);
  const auto k = ops::normed_rotated(std::array{text.k, image.k}, kQkNormEps, rope);
  const auto attended = attend_tokens(attend, q, k, at::cat({text.v, image.v}, 1));
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  return {.image_BIC = attended.narrow(1, num_text, num_image),
          .text_BTC = attended.narrow(1, 0, num_text)};
}

FluxDoubleBlock::Tokens FluxDoubleBlock::operator()(const Tokens& x, const Tensor& modulations_BM,
                                                    const Rope& rope, const Attend& attend) const {
  const auto mods = split_modulations(modulations_BM, 4);
  const FluxSide::Modulations image_mod{.attention = mods[0], .mlp = mods[1]};
  const FluxSide::Modulations text_mod{.attention = mods[2], .mlp = mods[3]};
  const auto attended = this->attend(x, image_mod, text_mod, rope, attend);
  const auto [image_y, text_y] =
      apply_both(image_.projection(), attended.image_BIC, text_.projection(), attended.text_BTC);
  const auto image = ops::gated_residual(x.image_BIC, image_mod.attention.gate, image_y);
  const auto text = ops::gated_residual(x.text_BTC, text_mod.attention.gate, text_y);
  const auto [image_z, text_z] = apply_both(image_.mlp_out(), image_.widen(image, image_mod.mlp),
                                            text_.mlp_out(), text_.widen(text, text_mod.mlp));
  return {.image_BIC = ops::gated_residual(image, image_mod.mlp.gate, image_z),
          .text_BTC = ops::gated_residual(text, text_mod.mlp.gate, text_z)};
}

FluxSingleBlock::FluxSingleBlock(const Weights& w, const FluxConfig& c)
    : in_(w / "linear1", {.in = c.hidden(), .out = 3 * c.hidden() + c.mlp_hidden()}),
      out_(w / "linear2", {.in = c.hidden() + c.mlp_hidden(), .out = c.hidden()}),
      q_norm_(w / "norm" / "query_norm", c.head_width, kQkNormEps),
      k_norm_(w / "norm" / "key_norm", c.head_width, kQkNormEps),
      head_width_(c.head_width) {}

Tensor FluxSingleBlock::operator()(const Tensor& x_BLC, const Tensor& modulations_BM,
                                   const Rope& rope, const Attend& attend) const {
  const auto mod = split_modulations(modulations_BM, 1).front();
  const auto fused = in_(ops::modulated_norm(x_BLC, mod));
  // [q | k | v | mlp], where the mlp is four times as wide as each of the others
  const auto width = fused.size(-1) / 7;
  const auto parts = fused.split_with_sizes({width, width, width, 4 * width}, -1);
  const auto heads = [&](const Tensor& part, const RmsNorm& norm) {
    return std::array{ops::NormedHeads{split_heads(part, head_width_), norm.weight()}};
  };
  const auto q = ops::normed_rotated(heads(parts[0], q_norm_), kQkNormEps, rope);
  const auto k = ops::normed_rotated(heads(parts[1], k_norm_), kQkNormEps, rope);
  const auto attended = attend_tokens(attend, q, k, split_heads(parts[2], head_width_));
  const auto y = out_(ops::joined_gelu(attended, parts[3]));
  return ops::gated_residual(x_BLC, mod.gate, y);
}

FluxDoubleModulator::FluxDoubleModulator(const Weights& w, const FluxConfig& c)
    : image_(w / "img_mod" / "lin", {.in = c.hidden(), .out = 6 * c.hidden()}),
      text_(w / "txt_mod" / "lin", {.in = c.hidden(), .out = 6 * c.hidden()}) {}

void FluxDoubleModulator::add_to(ModulationsMade& made) const {
  made.add(image_);
  made.add(text_);
}

FluxSingleModulator::FluxSingleModulator(const Weights& w, const FluxConfig& c)
    : lin_(w / "modulation" / "lin", {.in = c.hidden(), .out = 3 * c.hidden()}) {}

}  // namespace braid
