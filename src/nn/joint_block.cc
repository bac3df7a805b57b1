#include "nn/joint_block.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

#include "nn/joined_tokens.h"

namespace braid {
namespace {

// The modulations of one side's tokens.
struct SideTokens {
  const SideModulations& all;  // but those of references, if they have their own
  const ReferenceModulations* references = nullptr;
};
SideTokens image_side(const JointModulations& m) {
  return {m.image, m.references ? &*m.references : nullptr};
}
SideTokens text_side(const JointModulations& m) { return {m.text}; }

// of_run(first token, number of tokens, modulations) of all tokens, or of the two runs that have
// their own: of_run returns a tensor [B L C].
template <class Of>
Tensor by_run(const Tensor& x_BLC, const SideTokens& m, const Of& of_run) {
  const auto all = x_BLC.size(1), begin = m.references ? m.references->begin : all;
  if (begin == all) return of_run(0, all, m.all);
  return at::cat({of_run(0, begin, m.all), of_run(begin, all - begin, m.references->side)}, 1);
}

Tensor normed(const Tensor& x_BLC, const SideTokens& m, Modulation SideModulations::*layer) {
  return by_run(x_BLC, m, [&](std::int64_t begin, std::int64_t count, const SideModulations& own) {
    return ops::modulated_norm(x_BLC.narrow(1, begin, count), own.*layer);
  });
}

Tensor plus_gated(const Tensor& x_BLC, const Tensor& y_BLC, const SideTokens& m,
                  Modulation SideModulations::*layer) {
  return by_run(x_BLC, m, [&](std::int64_t begin, std::int64_t count, const SideModulations& own) {
    return ops::gated_residual(x_BLC.narrow(1, begin, count), (own.*layer).gate,
                               y_BLC.narrow(1, begin, count));
  });
}

// The result is in the form in which a layer reads it, but numbers where runs have their own.
ops::LayerInput normed(const Tensor& x_BLC, const SideTokens& m, Modulation SideModulations::*layer,
                       ops::InputForm form) {
  if (m.references) return normed(x_BLC, m, layer);
  return ops::modulated_norm(x_BLC, m.all.*layer, form);
}

// The residual with attention's result, and its norm before the MLP.
ops::SumAndInput with_attended(const Tensor& x_BLC, const Tensor& y_BLC, const SideTokens& m,
                               ops::InputForm form) {
  if (!m.references)
    return ops::gated_residual_norm(x_BLC, m.all.attention.gate, y_BLC, m.all.mlp, form);
  const auto sum = plus_gated(x_BLC, y_BLC, m, &SideModulations::attention);
  return {sum, normed(sum, m, &SideModulations::mlp)};
}

struct Projected {
  ops::QueriesKeys heads;  // not yet normalised, with the norms' weights
  Tensor v_BLHD;
};

// `room` is for the projection.
Projected projected(const JointSide& side, const Tensor& x_BLC, const SideTokens& m,
                    const Tensor& room) {
  const auto form = side.qkv.input_form(x_BLC);
  const auto parts =
      side.qkv(normed(x_BLC, m, &SideModulations::attention, form), room).chunk(3, -1);
  const auto head_width = side.q_norm.weight().size(0);
  return {.heads = {{split_heads(parts[0], head_width), side.q_norm.weight()},
                    {split_heads(parts[1], head_width), side.k_norm.weight()}},
          .v_BLHD = split_heads(parts[2], head_width)};
}

// The MLP's hidden activations, of the norm of `sum_BLC`, which is freed.
ops::LayerInput widened(const JointSide& side, JointBlock::Mlp mlp, ops::SumAndInput& h) {
  const auto normed = std::move(h.normed);
  if (mlp == JointBlock::Mlp::kGelu)
    return side.mlp_in.gelu(normed, side.mlp_out.input_form(h.sum_BLC));
  const auto halves = side.mlp_in(normed).chunk(2, -1);
  return ops::swiglu(halves[0], halves[1]);
}

// What follows attention, for one side.
Tensor finished(const JointSide& side, JointBlock::Mlp mlp, const Tensor& x_BLC,
                const Tensor& attended_BLC, const SideTokens& m) {
  const auto y = side.proj(attended_BLC);
  auto h = with_attended(x_BLC, y, m, side.mlp_in.input_form(x_BLC));
  const auto z = side.mlp_out(widened(side, mlp, h));
  return plus_gated(h.sum_BLC, z, m, &SideModulations::mlp);
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

// One piece of a GPU's memory for the queries, keys and values of both sides, so that values need
// no joining. Several pictures' would not lie one behind the other, and two streams have memory of
// their own.
JointTokens JointBlock::room_for_qkv(const JointTokens& x) const {
  if (!x.image_BIC.is_cuda() || x.image_BIC.size(0) > 1) return {};
  if (image_and_text_.runs_concurrently()) return {};
  const bool is_text_first = form_.first == First::kText;
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  const auto all =
      at::empty({1, num_text + num_image, sides_.image.qkv.outputs()}, x.image_BIC.options());
  return {.image_BIC = all.narrow(1, is_text_first ? num_text : 0, num_image),
          .text_BTC = all.narrow(1, is_text_first ? 0 : num_image, num_text)};
}

// The attended tokens of both sides, before the output projection.
JointTokens JointBlock::attended(const JointTokens& x, const JointModulations& m, const Rope& rope,
                                 const Attend& attend) const {
  const bool is_text_first = form_.first == First::kText;
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  const auto room = room_for_qkv(x);
  const auto [image, text] = image_and_text_(
      [&] { return projected(sides_.image, x.image_BIC, image_side(m), room.image_BIC); },
      [&] { return projected(sides_.text, x.text_BTC, text_side(m), room.text_BTC); });
  const auto &first = is_text_first ? text : image, &second = is_text_first ? image : text;
  const auto y = attend_tokens(
      attend, ops::normed_rotated(std::array{first.heads, second.heads}, form_.norm_eps, rope),
      one_behind_other(first.v_BLHD, second.v_BLHD));
  return {.image_BIC = y.narrow(1, is_text_first ? num_text : 0, num_image),
          .text_BTC = y.narrow(1, is_text_first ? 0 : num_image, num_text)};
}

JointTokens JointBlock::operator()(const JointTokens& x, const JointModulations& m,
                                   const Rope& rope, const Attend& attend) const {
  auto attended = this->attended(x, m, rope, attend);
  if (!image_and_text_.runs_concurrently()) return finished_together(x, std::move(attended), m);
  auto [image, text] = image_and_text_(
      [&] {
        return finished(sides_.image, form_.mlp, x.image_BIC, attended.image_BIC, image_side(m));
      },
      [&] {
        return finished(sides_.text, form_.mlp, x.text_BTC, attended.text_BTC, text_side(m));
      });
  return {.image_BIC = std::move(image), .text_BTC = std::move(text)};
}

// What follows attention for both sides, whose sums over devices travel together.
JointTokens JointBlock::finished_together(const JointTokens& x, JointTokens attended,
                                          const JointModulations& m) const {
  if (m.references) return finished_by_run(x, std::move(attended), m);
  const auto& [of_image, of_text] = sides_;
  auto [image, text] = gated_residual_norms(
      {{of_image.proj, std::move(attended.image_BIC), x.image_BIC, m.image.attention.gate},
       m.image.mlp,
       of_image.mlp_in.input_form(x.image_BIC)},
      {{of_text.proj, std::move(attended.text_BTC), x.text_BTC, m.text.attention.gate},
       m.text.mlp,
       of_text.mlp_in.input_form(x.text_BTC)});
  auto [image_sum, text_sum] = gated_residuals(
      {of_image.mlp_out, widened(of_image, form_.mlp, image), image.sum_BLC, m.image.mlp.gate},
      {of_text.mlp_out, widened(of_text, form_.mlp, text), text.sum_BLC, m.text.mlp.gate});
  return {.image_BIC = std::move(image_sum), .text_BTC = std::move(text_sum)};
}

// The same where references have gates of their own.
JointTokens JointBlock::finished_by_run(const JointTokens& x, JointTokens attended,
                                        const JointModulations& m) const {
  const auto& [of_image, of_text] = sides_;
  const auto both = [](const Linear& a, ops::LayerInput x_a, const Linear& b, ops::LayerInput x_b) {
    return apply_both(a, x_a, b, x_b);  // and frees what they read
  };
  auto [image, text] = [&] {
    const auto [image_y, text_y] = both(of_image.proj, std::move(attended.image_BIC), of_text.proj,
                                        std::move(attended.text_BTC));
    const auto numbers = ops::InputForm::kNumbers;
    return std::pair{with_attended(x.image_BIC, image_y, image_side(m), numbers),
                     with_attended(x.text_BTC, text_y, text_side(m), numbers)};
  }();
  const auto [image_z, text_z] = both(of_image.mlp_out, widened(of_image, form_.mlp, image),
                                      of_text.mlp_out, widened(of_text, form_.mlp, text));
  return {.image_BIC = plus_gated(image.sum_BLC, image_z, image_side(m), &SideModulations::mlp),
          .text_BTC = plus_gated(text.sum_BLC, text_z, text_side(m), &SideModulations::mlp)};
}

}  // namespace braid
