#include "models/vae/layers.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr double kEps = 1e-6;

}  // namespace

GroupNorm::GroupNorm(const Weights& w, std::int64_t channels, std::int64_t groups)
    : parts_{.weight_C = w.tensor("weight", {channels}),
             .bias_C = w.tensor("bias", {channels}),
             .groups = groups,
             .eps = kEps} {}

Tensor GroupNorm::operator()(const Tensor& x_BC) const {
  return at::group_norm(x_BC, parts_.groups, parts_.weight_C, parts_.bias_C, parts_.eps);
}

Conv2d::Conv2d(const Weights& scope, ConvShape shape) {
  const auto w = scope.paged(PageLevel::kLeaf);
  conv_ = {.weight_OIKK = w.tensor("weight", {shape.out, shape.in, shape.kernel, shape.kernel}),
           .bias_O = w.tensor("bias", {shape.out}),
           .stride = shape.stride,
           .padding = shape.padding};
  page_ = w.page();
}

Tensor Conv2d::operator()(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::convolve(x, conv_);
}

Tensor Conv2d::of_doubled(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::convolve_doubled(x, conv_);
}

Tensor Conv2d::halving(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::convolve_halved(x, conv_);
}

Tensor Conv2d::of_normed(Tensor x, const GroupNorm& norm) const {
  const auto in_use = page_.use();
  return ops::convolve_normed(std::move(x), norm.parts(), conv_);
}

Tensor Conv2d::of_normed(Tensor x, const GroupNorm& norm, const ImageResidual& residual) const {
  const auto in_use = page_.use();
  return ops::convolve_normed(std::move(x), norm.parts(), conv_, residual);
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
  return apply(x, ImageResidual::Memory::kKept);
}

Tensor ResnetBlock::in_place(const Tensor& x) const {
  return apply(x, ImageResidual::Memory::kReused);
}

Tensor ResnetBlock::apply(const Tensor& x, ImageResidual::Memory of_x) const {
  auto h = conv1_.of_normed(x, norm1_);
  if (!shortcut_) return conv2_.of_normed(std::move(h), norm2_, {.x_BCHW = x, .memory = of_x});
  return conv2_.of_normed(std::move(h), norm2_,
                          {.x_BCHW = (*shortcut_)(x), .memory = ImageResidual::Memory::kReused});
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

MidBlock::MidBlock(const Weights& w, std::int64_t channels, const VaeConfig& c)
    : first_(w / "resnets" / 0, channels, channels, c.norm_groups),
      second_(w / "resnets" / 1, channels, channels, c.norm_groups) {
  if (c.mid_attention) attention_.emplace(w / "attentions" / 0, channels, c.norm_groups);
}

Tensor MidBlock::operator()(const Tensor& x) const {
  const auto h = first_(x);
  return second_(attention_ ? (*attention_)(h) : h);
}

StoredNorm::StoredNorm(const Weights& w, std::int64_t channels, double eps)
    : mean_C_(w.tensor("running_mean", {channels})),
      variance_C_(w.tensor("running_var", {channels})),
      eps_(eps) {}

StoredNorm::Statistics StoredNorm::statistics(at::ScalarType dtype) const {
  const auto over_pixels = [&](const Tensor& x_C) { return x_C.to(dtype).view({-1, 1, 1}); };
  return {.mean_C11 = over_pixels(mean_C_),
          .deviation_C11 = over_pixels((variance_C_ + eps_).sqrt())};
}

Tensor StoredNorm::operator()(const Tensor& x) const {
  const auto [mean, deviation] = statistics(x.scalar_type());
  return (x - mean) / deviation;
}

Tensor StoredNorm::undo(const Tensor& x) const {
  const auto [mean, deviation] = statistics(x.scalar_type());
  return x * deviation + mean;
}

std::vector<ResnetBlock> load_resnets(const Weights& w, std::int64_t in, std::int64_t out,
                                      std::int64_t count, std::int64_t groups) {
  std::vector<ResnetBlock> resnets;
  for (std::int64_t i = 0; i < count; ++i)
    resnets.emplace_back(w / i, i == 0 ? in : out, out, groups);
  return resnets;
}

}  // namespace braid
