#include "models/flux2/blocks.h"

#include <ATen/ATen.h>

#include <array>

namespace braid {
namespace {

constexpr double kQkNormEps = 1e-6;

}  // namespace

Flux2Side::Flux2Side(const Weights& block, const std::string& side, const Flux2Config& c)
    : qkv_(block / (side + "_attn") / "qkv",
           {.in = c.hidden(), .out = 3 * c.hidden(), .bias = Bias::kNo}),
      proj_(block / (side + "_attn") / "proj",
            {.in = c.hidden(), .out = c.hidden(), .bias = Bias::kNo}),
      mlp_in_(block / (side + "_mlp") / "0",
              {.in = c.hidden(), .out = 2 * c.mlp_hidden, .bias = Bias::kNo}),
      mlp_out_(block / (side + "_mlp") / "2",
               {.in = c.mlp_hidden, .out = c.hidden(), .bias = Bias::kNo}),
      q_norm_(block / (side + "_attn") / "norm" / "query_norm", c.head_width, kQkNormEps),
      k_norm_(block / (side + "_attn") / "norm" / "key_norm", c.head_width, kQkNormEps),
      head_width_(c.head_width) {}

Flux2Side::Qkv Flux2Side::project(const Tensor& x_BLC, const Modulation& m) const {
  const auto parts = qkv_(ops::modulated_norm(x_BLC, m)).chunk(3, -1);
  return {.q = {split_heads(parts[0], head_width_), q_norm_.weight()},
          .k = {split_heads(parts[1], head_width_), k_norm_.weight()},
          .v = split_heads(parts[2], head_width_)};
}

Tensor Flux2Side::widen(const Tensor& x_BLC, const Modulation& m) const {
  const auto halves = mlp_in_(ops::modulated_norm(x_BLC, m)).chunk(2, -1);  // [gate | value]
  return ops::swiglu(halves[0], halves[1]);
}

Flux2DoubleBlock::Flux2DoubleBlock(const Weights& w, const Flux2Config& config)
    : image_(w, "img", config), text_(w, "txt", config) {}

// The attended tokens of both sides, not yet projected.
Flux2DoubleBlock::Tokens Flux2DoubleBlock::attend(const Tokens& x, const Modulations& m,
                                                  const Rope& rope, const Attend& attend) const {
  const auto image = image_.project(x.image_BIC, m.image.attention);
  const auto text = text_.project(x.text_BTC, m.text.attention);
  const auto q = ops::normed_rotated(std::array{text.q, image.q}, kQkNormEps, rope);
  const auto k = ops::normed_rotated(std::array{text.k, image.k}, kQkNormEps, rope);
  const auto attended = attend_tokens(attend, q, k, at::cat({text.v, image.v}, 1));
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  return {.image_BIC = attended.narrow(1, num_text, num_image),
          .text_BTC = attended.narrow(1, 0, num_text)};
}

Flux2DoubleBlock::Tokens Flux2DoubleBlock::operator()(const Tokens& x, const Modulations& m,
                                                      const Rope& rope,
                                                      const Attend& attend) const {
  const auto attended = this->attend(x, m, rope, attend);
  const auto [image_y, text_y] =
      apply_both(image_.projection(), attended.image_BIC, text_.projection(), attended.text_BTC);
  const auto image = ops::gated_residual(x.image_BIC, m.image.attention.gate, image_y);
  const auto text = ops::gated_residual(x.text_BTC, m.text.attention.gate, text_y);
  const auto [image_z, text_z] = apply_both(image_.mlp_out(), image_.widen(image, m.image.mlp),
                                            text_.mlp_out(), text_.widen(text, m.text.mlp));
  return {.image_BIC = ops::gated_residual(image, m.image.mlp.gate, image_z),
          .text_BTC = ops::gated_residual(text, m.text.mlp.gate, text_z)};
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
  const auto fused = in_(ops::modulated_norm(x_BLC, m));
  // [q | k | v | gate | value], of all or of a share
  const auto width = fused.size(-1) * hidden_ / (3 * hidden_ + 2 * mlp_hidden_);
  const auto mlp = (fused.size(-1) - 3 * width) / 2;
  const auto parts = fused.split_with_sizes({width, width, width, mlp, mlp}, -1);
  const auto heads = [&](const Tensor& part, const RmsNorm& norm) {
    return std::array{ops::NormedHeads{split_heads(part, head_width_), norm.weight()}};
  };
  const auto q = ops::normed_rotated(heads(parts[0], q_norm_), kQkNormEps, rope);
  const auto k = ops::normed_rotated(heads(parts[1], k_norm_), kQkNormEps, rope);
  const auto attended = attend_tokens(attend, q, k, split_heads(parts[2], head_width_));
  const auto y = out_(ops::joined_swiglu(attended, parts[3], parts[4]));
  return ops::gated_residual(x_BLC, m.gate, y);
}

}  // namespace braid
