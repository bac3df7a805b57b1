#include "models/vae/wan.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

std::vector<std::int64_t> gamma_shape(std::int64_t channels, WanNorm::Of of) {
  if (of == WanNorm::Of::kPicture) return {channels, 1, 1};
  return {channels, 1, 1, 1};
}

Tensor last_slice(const Tensor& weight_OIKKK) {
  return weight_OIKKK.select(2, weight_OIKKK.size(2) - 1).contiguous();
}

// An encoder level's resnets form one list, with its resampling layer last.
std::vector<WanLevel> encoder_levels(const Weights& list, const VaeConfig& c) {
  std::vector<WanLevel> levels;
  std::int64_t next = 0;
  auto width = c.encoder_stem();
  for (std::size_t i = 0; i < c.widths.size(); ++i) {
    auto& level = levels.emplace_back();
    for (std::int64_t k = 0; k < c.layers_per_block; ++k) {
      level.resnets.emplace_back(list / next++, width, c.widths[i], WanTime::kStored);
      width = c.widths[i];
    }
    if (i + 1 < c.widths.size())
      level.resample.emplace(list / next++ / "resample" / 1,
                             ConvShape{.in = width, .out = width, .stride = 2, .padding = 0});
  }
  return levels;
}

// Upsampling halves the channels.
std::vector<WanLevel> decoder_levels(const Weights& list, const VaeConfig& c) {
  auto widths = c.decoder_widths();
  std::reverse(widths.begin(), widths.end());  // coarsest first
  std::vector<WanLevel> levels;
  auto in = widths.front();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto w = list / std::int64_t(i);
    auto& level = levels.emplace_back();
    for (std::int64_t k = 0; k <= c.layers_per_block; ++k)
      level.resnets.emplace_back(w / "resnets" / k, k == 0 ? in : widths[i], widths[i],
                                 WanTime::kStored);
    in = widths[i] / 2;
    if (i + 1 < widths.size())
      level.resample.emplace(w / "upsamplers" / 0 / "resample" / 1,
                             ConvShape{.in = widths[i], .out = in});
  }
  return levels;
}

}  // namespace

// A paged weight has no values yet and keeps all its slices.
WanConv::WanConv(const Weights& scope, Shape shape) {
  const auto w = scope.paged(PageLevel::kLeaf);
  std::vector<std::int64_t> extents = {shape.out, shape.in, shape.kernel, shape.kernel};
  if (shape.time == WanTime::kStored) extents.push_back(shape.kernel);
  weight_ = w.tensor("weight", extents);
  bias_O_ = w.tensor("bias", {shape.out});
  page_ = w.page();
  if (weight_.defined() && weight_.dim() == 5 && weight_.numel() > 0) weight_ = last_slice(weight_);
}

Convolution WanConv::conv() const {
  const auto weight_OIKK = weight_.dim() == 5 ? last_slice(weight_) : weight_;
  return {.weight_OIKK = weight_OIKK, .bias_O = bias_O_, .padding = weight_OIKK.size(3) / 2};
}

Tensor WanConv::operator()(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::convolve(x, conv());
}

Tensor WanConv::of_normed(Tensor x, const WanNorm& norm,
                          const std::optional<ImageResidual>& residual) const {
  const auto in_use = page_.use();
  return ops::convolve_normed(std::move(x), norm.parts(), conv(), residual);
}

WanNorm::WanNorm(const Weights& w, std::int64_t channels, Of of)
    : parts_{w.tensor("gamma", gamma_shape(channels, of))} {}

Tensor WanNorm::operator()(const Tensor& x) const { return ops::pixel_norm(x, parts_); }

WanResnet::WanResnet(const Weights& w, std::int64_t in, std::int64_t out, WanTime time)
    : norm1_(w / "norm1", in),
      norm2_(w / "norm2", out),
      conv1_(w / "conv1", {.in = in, .out = out, .time = time}),
      conv2_(w / "conv2", {.in = out, .out = out, .time = time}) {
  if (in != out)
    shortcut_.emplace(w / "conv_shortcut",
                      WanConv::Shape{.in = in, .out = out, .kernel = 1, .time = time});
}

Tensor WanResnet::operator()(const Tensor& x) const {
  return apply(x, ImageResidual::Memory::kKept);
}

Tensor WanResnet::in_place(const Tensor& x) const {
  return apply(x, ImageResidual::Memory::kReused);
}

Tensor WanResnet::apply(const Tensor& x, ImageResidual::Memory of_x) const {
  auto h = conv1_.of_normed(x, norm1_);
  if (!shortcut_) return conv2_.of_normed(std::move(h), norm2_, ImageResidual{x, of_x});
  return conv2_.of_normed(std::move(h), norm2_,
                          ImageResidual{(*shortcut_)(x), ImageResidual::Memory::kReused});
}

WanAttention::WanAttention(const Weights& w, std::int64_t channels)
    : norm_(w / "norm", channels, WanNorm::Of::kPicture),
      qkv_(w / "to_qkv", {.in = channels, .out = 3 * channels, .kernel = 1, .padding = 0}),
      proj_(w / "proj", {.in = channels, .out = channels, .kernel = 1, .padding = 0}) {}

Tensor WanAttention::operator()(const Tensor& x) const {
  const auto parts = qkv_(norm_(x)).flatten(2).transpose(1, 2).contiguous().chunk(3, -1);
  const auto one_head = [](const Tensor& t_BLC) { return t_BLC.unsqueeze(2); };
  const auto attended =
      attend_tokens(ops::attention, one_head(parts[0]), one_head(parts[1]), one_head(parts[2]));
  return proj_(attended.transpose(1, 2).reshape(x.sizes())) + x;
}

WanMidBlock::WanMidBlock(const Weights& w, std::int64_t channels, WanTime time)
    : first_(w / "resnets" / 0, channels, channels, time),
      attention_(w / "attentions" / 0, channels),
      second_(w / "resnets" / 1, channels, channels, time) {}

WanEncoder::WanEncoder(const Weights& w, const VaeConfig& c)
    : in_(w / "encoder" / "conv_in", {.in = c.image_channels, .out = c.encoder_stem()}),
      levels_(encoder_levels(w / "encoder" / "down_blocks", c)),
      mid_(w / "encoder" / "mid_block", c.widths.back(), WanTime::kStored),
      norm_(w / "encoder" / "norm_out", c.widths.back()),
      out_(w / "encoder" / "conv_out", {.in = c.widths.back(), .out = 2 * c.latent_channels}),
      quant_(w / "quant_conv",
             {.in = 2 * c.latent_channels, .out = 2 * c.latent_channels, .kernel = 1}) {}

Tensor WanEncoder::operator()(const Tensor& picture) const {
  auto x = in_(picture);
  for (const auto& level : levels_) {
    for (const auto& resnet : level.resnets) x = resnet.in_place(x);
    if (level.resample) x = level.resample->halving(x);
  }
  return quant_(out_.of_normed(mid_(x), norm_));
}

WanDecoder::WanDecoder(const Weights& w, const VaeConfig& c)
    : post_quant_(w / "post_quant_conv",
                  {.in = c.latent_channels, .out = c.latent_channels, .kernel = 1}),
      in_(w / "decoder" / "conv_in", {.in = c.latent_channels, .out = c.decoder_widths().back()}),
      mid_(w / "decoder" / "mid_block", c.decoder_widths().back(), WanTime::kStored),
      levels_(decoder_levels(w / "decoder" / "up_blocks", c)),
      norm_(w / "decoder" / "norm_out", c.decoder_widths().front()),
      out_(w / "decoder" / "conv_out",
           {.in = c.decoder_widths().front(), .out = c.image_channels}) {}

Tensor WanDecoder::operator()(const Tensor& latents) const {
  auto x = mid_(in_(post_quant_(latents)));
  for (const auto& level : levels_) {
    for (const auto& resnet : level.resnets) x = resnet(x);
    if (level.resample) x = level.resample->of_doubled(x);
  }
  return out_.of_normed(x, norm_);
}

}  // namespace braid
