#include "models/flux/blocks.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

namespace braid {
namespace {

constexpr double kQkNormEps = 1e-6;

JointSide load_side(const Weights& block, const std::string& side, const FluxConfig& c) {
  const auto attention = block / (side + "_attn"), mlp = block / (side + "_mlp");
  return {.qkv = {attention / "qkv", {.in = c.hidden(), .out = 3 * c.hidden()}},
          .proj = {attention / "proj", {.in = c.hidden(), .out = c.hidden()}},
          .mlp_in = {mlp / "0", {.in = c.hidden(), .out = c.mlp_hidden()}},
          .mlp_out = {mlp / "2", {.in = c.mlp_hidden(), .out = c.hidden()}},
          .q_norm = {attention / "norm" / "query_norm", c.head_width, kQkNormEps},
          .k_norm = {attention / "norm" / "key_norm", c.head_width, kQkNormEps}};
}

}  // namespace

std::vector<Modulation> split_modulations(const Tensor& packed_BC, std::int64_t n) {
  const auto parts = packed_BC.unsqueeze(1).chunk(3 * n, -1);
  std::vector<Modulation> out;
  for (std::size_t i = 0; i < parts.size(); i += 3)
    out.push_back({.shift = parts[i], .scale = parts[i + 1], .gate = parts[i + 2]});
  return out;
}

FluxDoubleBlock::FluxDoubleBlock(const Weights& w, const FluxConfig& c)
    : joint_({.image = load_side(w, "img", c), .text = load_side(w.on_second_stream(), "txt", c)},
             {.mlp = JointBlock::Mlp::kGelu,
              .first = JointBlock::First::kText,
              .norm_eps = kQkNormEps},
             w.second_stream()) {}

JointTokens FluxDoubleBlock::operator()(const JointTokens& x, const Tensor& modulations_BM,
                                        const Rope& rope, const Attend& attend) const {
  const auto mods = split_modulations(modulations_BM, 4);
  const JointModulations modulations{.image = {mods[0], mods[1]}, .text = {mods[2], mods[3]}};
  return (*this)(x, modulations, rope, attend);
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
  const auto normed = [&] { return ops::modulated_norm(x_BLC, mod, in_.input_form(x_BLC)); };
  const auto attended = [&](const Tensor& qkv_BLC) {
    const auto parts = qkv_BLC.chunk(3, -1);
    const ops::QueriesKeys heads{{split_heads(parts[0], head_width_), q_norm_.weight()},
                                 {split_heads(parts[1], head_width_), k_norm_.weight()}};
    return attend_tokens(attend, ops::normed_rotated(std::array{heads}, kQkNormEps, rope),
                         split_heads(parts[2], head_width_));
  };
  // [q | k | v | mlp], where the mlp is four times as wide as each of the others
  const auto width = in_.outputs() / 7;
  if (in_.ends_in_gelu(x_BLC) && out_.takes_parts(x_BLC)) {
    auto [qkv, hidden] = in_.then_gelu(normed().x, 3 * width);
    return out_.gated_residual(
        x_BLC, mod.gate, ops::LayerInput::in_parts(attended(std::move(qkv)), std::move(hidden)));
  }
  const auto parts = in_(normed()).split_with_sizes({3 * width, 4 * width}, -1);
  return out_.gated_residual(
      x_BLC, mod.gate, ops::joined_gelu(attended(parts[0]), parts[1], out_.input_form(x_BLC)));
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
