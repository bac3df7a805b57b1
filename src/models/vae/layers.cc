#include "models/vae/layers.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr double kEps = 1e-6;

}  // namespace

Conv2d::Conv2d(const Weights& scope, ConvShape shape) : shape_(shape) {
  const auto w = scope.paged(PageLevel::kLeaf);
  weight_ = w.tensor("weight", {shape.out, shape.in, shape.kernel, shape.kernel});
  bias_ = w.tensor("bias", {shape.out});
  page_ = w.page();
}

Tensor Conv2d::operator()(const Tensor& x) const {
  const auto in_use = page_.use();
  return at::conv2d(x, weight_, bias_, {shape_.stride, shape_.stride},
                    at::IntArrayRef{shape_.padding, shape_.padding});
}

GroupNorm::GroupNorm(const Weights& w, std::int64_t channels, std::int64_t groups)
    : weight_(w.tensor("weight", {channels})),
      bias_(w.tensor("bias", {channels})),
      groups_(groups) {}

Tensor GroupNorm::operator()(const Tensor& x_BC) const {
  return at::group_norm(x_BC, groups_, weight_, bias_, kEps);
}

ResnetBlock::ResnetBlock(const Weights& w, std::int64_t in, std::int64_t out, std::int64_t groups)
    : norm1_(w / "norm1", in, groups),
      norm2_(w / "norm2", out, groups),
      conv1_(w / "conv1", {.in = in, .out = out}),
      conv2_(w / "conv2", {.in = out, .out = out}) {
  if (in != out)
    shortcut_.emplace(w / "conv_shortcut",
                      ConvShape{.in = in, .out = out, .kernel = 1, .padding = 0});
}

Tensor ResnetBlock::operator()(const Tensor& x) const {
  auto h = norm1_(x);
  h = conv1_(at::silu_(h));
  h = norm2_(h);
  h = conv2_(at::silu_(h));
  return h.add_(shortcut_ ? (*shortcut_)(x) : x);
}

PixelAttention::PixelAttention(const Weights& w, std::int64_t channels, std::int64_t groups)
    : norm_(w / "group_norm", channels, groups),
      qkv_(w / "qkv", {.in = channels, .out = 3 * channels}),
      proj_(w / "to_out" / 0, {.in = channels, .out = channels}) {}

Tensor PixelAttention::operator()(const Tensor& x) const {
  const auto pixels_BLC = norm_(x.flatten(2)).transpose(1, 2);
  const auto parts = qkv_(pixels_BLC).chunk(3, -1);
  const auto one_head = [](const Tensor& t_BLC) { return t_BLC.unsqueeze(2); };
  const auto attended =
      attend_tokens(ops::attention, one_head(parts[0]), one_head(parts[1]), one_head(parts[2]));
  return proj_(attended).transpose(1, 2).reshape(x.sizes()) + x;
}

MidBlock::MidBlock(const Weights& w, const VaeConfig& c)
    : first_(w / "resnets" / 0, c.widths.back(), c.widths.back(), c.norm_groups),
      second_(w / "resnets" / 1, c.widths.back(), c.widths.back(), c.norm_groups) {
  if (c.mid_attention) attention_.emplace(w / "attentions" / 0, c.widths.back(), c.norm_groups);
}

Tensor MidBlock::operator()(const Tensor& x) const {
  const auto h = first_(x);
  return second_(attention_ ? (*attention_)(h) : h);
}

std::vector<ResnetBlock> load_resnets(const Weights& w, std::int64_t in, std::int64_t out,
                                      std::int64_t count, std::int64_t groups) {
  std::vector<ResnetBlock> resnets;
  for (std::int64_t i = 0; i < count; ++i)
    resnets.emplace_back(w / i, i == 0 ? in : out, out, groups);
  return resnets;
}

}  // namespace braid
