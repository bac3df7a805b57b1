#include "nn/joint_block.h"

#include <ATen/ATen.h>

#include <array>

namespace braid {
namespace {

struct Projected {
  ops::NormedHeads q, k;  // not yet normalised, with the norms' weights
  Tensor v_BLHD;
};

Projected projected(const JointSide& side, const Tensor& x_BLC, const Modulation& m) {
  const auto parts = side.qkv(ops::modulated_norm(x_BLC, m)).chunk(3, -1);
  const auto head_width = side.q_norm.weight().size(0);
  return {.q = {split_heads(parts[0], head_width), side.q_norm.weight()},
          .k = {split_heads(parts[1], head_width), side.k_norm.weight()},
          .v_BLHD = split_heads(parts[2], head_width)};
}

bool may_run_concurrently(const JointSide& image, const JointSide& text) {
  const auto layers = [](const JointSide& side) {
    return std::array{&side.qkv, &side.proj, &side.mlp_in, &side.mlp_out};
  };
  for (const auto* a : layers(image))
    for (const auto* b : layers(text))
      if (!a->may_run_concurrently(*b)) return false;
  return true;
}

}  // namespace

JointBlock::JointBlock(JointSides sides, Form form, const std::optional<c10::Stream>& second_stream)
    : sides_(std::move(sides)), form_(form) {
  if (may_run_concurrently(sides_.image, sides_.text)) image_and_text_ = TwoStreams(second_stream);
}

// The attended tokens of both sides, before the output projection.
JointTokens JointBlock::attended(const JointTokens& x, const JointModulations& m, const Rope& rope,
                                 const Attend& attend) const {
  const auto [image, text] =
      image_and_text_([&] { return projected(sides_.image, x.image_BIC, m.image.attention); },
                      [&] { return projected(sides_.text, x.text_BTC, m.text.attention); });
  const bool is_text_first = form_.first == First::kText;
  const auto &first = is_text_first ? text : image, &second = is_text_first ? image : text;
  const auto q = ops::normed_rotated(std::array{first.q, second.q}, form_.norm_eps, rope);
  const auto k = ops::normed_rotated(std::array{first.k, second.k}, form_.norm_eps, rope);
  const auto y = attend_tokens(attend, q, k, at::cat({first.v_BLHD, second.v_BLHD}, 1));
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  return {.image_BIC = y.narrow(1, is_text_first ? num_text : 0, num_image),
          .text_BTC = y.narrow(1, is_text_first ? 0 : num_image, num_text)};
}

// The MLP's hidden activations.
Tensor JointBlock::widened(const JointSide& side, const Tensor& normed_BLC) const {
  if (form_.mlp == Mlp::kGelu) return side.mlp_in.gelu(normed_BLC);
  const auto halves = side.mlp_in(normed_BLC).chunk(2, -1);
  return ops::swiglu(halves[0], halves[1]);
}

JointTokens JointBlock::operator()(const JointTokens& x, const JointModulations& m,
                                   const Rope& rope, const Attend& attend) const {
  const auto attended = this->attended(x, m, rope, attend);
  if (!image_and_text_.runs_concurrently()) return finished_together(x, attended, m);
  auto [image, text] = image_and_text_(
      [&] { return finished(sides_.image, x.image_BIC, attended.image_BIC, m.image); },
      [&] { return finished(sides_.text, x.text_BTC, attended.text_BTC, m.text); });
  return {.image_BIC = std::move(image), .text_BTC = std::move(text)};
}

// What follows attention, for one side.
Tensor JointBlock::finished(const JointSide& side, const Tensor& x_BLC, const Tensor& attended_BLC,
                            const SideModulations& m) const {
  const auto y = side.proj(attended_BLC);
  const auto h = ops::gated_residual_norm(x_BLC, m.attention.gate, y, m.mlp);
  const auto z = side.mlp_out(widened(side, h.normed_BLC));
  return ops::gated_residual(h.sum_BLC, m.mlp.gate, z);
}

// The same for both, whose sums over devices travel together.
JointTokens JointBlock::finished_together(const JointTokens& x, const JointTokens& attended,
                                          const JointModulations& m) const {
  const auto& [image_side, text_side] = sides_;
  const auto [image_y, text_y] =
      apply_both(image_side.proj, attended.image_BIC, text_side.proj, attended.text_BTC);
  const auto image =
      ops::gated_residual_norm(x.image_BIC, m.image.attention.gate, image_y, m.image.mlp);
  const auto text = ops::gated_residual_norm(x.text_BTC, m.text.attention.gate, text_y, m.text.mlp);
  const auto [image_z, text_z] =
      apply_both(image_side.mlp_out, widened(image_side, image.normed_BLC), text_side.mlp_out,
                 widened(text_side, text.normed_BLC));
  return {.image_BIC = ops::gated_residual(image.sum_BLC, m.image.mlp.gate, image_z),
          .text_BTC = ops::gated_residual(text.sum_BLC, m.text.mlp.gate, text_z)};
}

}  // namespace braid
