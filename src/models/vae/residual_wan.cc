#include "models/vae/residual_wan.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/free_memory.h"

namespace braid {
namespace {

constexpr std::int64_t kCell = 4;  // pixels of a block of 2 x 2
constexpr auto kFlat = WanTime::kNone;

using Resample = WanShortcut::Resample;

std::int64_t frames_of(const WanShortcut& s) { return s.temporal ? 2 : 1; }

// How many of an input's channels, of one pixel in all its frames, a shortcut mixes or makes.
std::int64_t cell_of(const WanShortcut& s) {
  return s.resample == Resample::kNone ? 1 : kCell * frames_of(s);
}

// The frame before a picture is 0, and comes first in each channel's block.
Tensor behind_no_frame(const Tensor& x_BCHW) {
  return at::stack({at::zeros_like(x_BCHW), x_BCHW}, 2).flatten(1, 2);
}

// x [B C H W], each output the mean of C / out channels.
Tensor mean_of_neighbours(const Tensor& x, std::int64_t out) {
  return x.size(1) == out ? x : x.unflatten(1, {out, -1}).mean(2);
}

Tensor halved(const Tensor& x, const WanShortcut& s) {
  const auto mixed = x.size(1) * cell_of(s) / s.out;  // for each output
  if (mixed % kCell == 0) {                           // whole blocks
    const auto blocks = at::avg_pool2d(x, {2, 2});
    return mean_of_neighbours(s.temporal ? behind_no_frame(blocks) : blocks, s.out);
  }
  const auto pixels = at::pixel_unshuffle(x, 2).unflatten(1, {-1, kCell});
  const auto all = s.temporal ? at::stack({at::zeros_like(pixels), pixels}, 2).flatten(1, 3)
                              : pixels.flatten(1, 2);
  return mean_of_neighbours(all, s.out);
}

// Channels are repeated, then become blocks of pixels and frames; the last frame is the picture.
Tensor doubled(const Tensor& x, const WanShortcut& s) {
  const auto frames = frames_of(s), repeats = s.out * cell_of(s) / x.size(1);
  const auto options = at::TensorOptions(at::kLong).device(x.device());
  const auto first_pixel = (at::arange(s.out, options) * frames + frames - 1) * kCell;
  const auto pixels = (first_pixel.unsqueeze(1) + at::arange(kCell, options)).flatten();
  const auto sources = at::floor_divide(pixels, repeats);
  return at::pixel_shuffle(x.index_select(1, sources), 2);
}

ConvShape halving_conv(std::int64_t width) {
  return {.in = width, .out = width, .stride = 2, .padding = 0};
}

std::vector<WanResnet> level_resnets(const Weights& w, std::int64_t in, std::int64_t out,
                                     std::int64_t count) {
  std::vector<WanResnet> resnets;
  for (std::int64_t k = 0; k < count; ++k)
    resnets.emplace_back(w / k, k == 0 ? in : out, out, kFlat);
  return resnets;
}

std::vector<ResidualLevel> residual_encoder_levels(const Weights& list, const VaeConfig& c) {
  const auto shortcuts = encoder_shortcuts(c);
  std::vector<ResidualLevel> levels;
  auto in = c.encoder_stem();
  for (std::size_t i = 0; i < c.widths.size(); ++i) {
    const auto w = list / std::int64_t(i);
    const auto out = c.widths[i];
    levels.push_back({.resnets = level_resnets(w / "resnets", in, out, c.layers_per_block),
                      .resample = {},
                      .shortcut = shortcuts[i]});
    if (i + 1 < c.widths.size())
      levels.back().resample.emplace(w / "downsampler" / "resample" / 1, halving_conv(out));
    in = out;
  }
  return levels;
}

std::vector<std::int64_t> coarsest_first(std::vector<std::int64_t> widths) {
  std::reverse(widths.begin(), widths.end());
  return widths;
}

std::vector<ResidualLevel> residual_decoder_levels(const Weights& list, const VaeConfig& c) {
  const auto widths = coarsest_first(c.decoder_widths());
  const auto shortcuts = decoder_shortcuts(c);
  std::vector<ResidualLevel> levels;
  auto in = widths.front();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto w = list / std::int64_t(i);
    const auto out = widths[i];
    levels.push_back({.resnets = level_resnets(w / "resnets", in, out, c.layers_per_block + 1),
                      .resample = {},
                      .shortcut = shortcuts[i]});
    if (i + 1 < widths.size())
      levels.back().resample.emplace(w / "upsampler" / "resample" / 1,
                                     ConvShape{.in = out, .out = out});
    in = out;
  }
  return levels;
}

}  // namespace

bool fits(const WanShortcut& s, std::int64_t in) {
  const auto cell = cell_of(s);
  if (s.resample == Resample::kDouble) return s.out * cell % in == 0;
  return in * cell % s.out == 0;
}

Tensor WanShortcut::operator()(const Tensor& x) const {
  switch (resample) {
    case Resample::kHalve:
      return halved(x, *this);
    case Resample::kDouble:
      return doubled(x, *this);
    case Resample::kNone:
      break;
  }
  return mean_of_neighbours(x, out);
}

std::vector<std::optional<WanShortcut>> encoder_shortcuts(const VaeConfig& c) {
  std::vector<std::optional<WanShortcut>> shortcuts;
  for (std::size_t i = 0; i < c.widths.size(); ++i) {
    const bool halves = i + 1 < c.widths.size();
    shortcuts.push_back(WanShortcut{.resample = halves ? Resample::kHalve : Resample::kNone,
                                    .temporal = halves && c.temporal[i],
                                    .out = c.widths[i]});
  }
  return shortcuts;
}

// None beside the level that does not double.
std::vector<std::optional<WanShortcut>> decoder_shortcuts(const VaeConfig& c) {
  const auto widths = coarsest_first(c.decoder_widths());
  std::vector<std::optional<WanShortcut>> shortcuts(widths.size());
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    shortcuts[i] = WanShortcut{.resample = Resample::kDouble,
                               .temporal = c.temporal[c.temporal.size() - 1 - i],
                               .out = widths[i]};
  return shortcuts;
}

ResidualWanEncoder::ResidualWanEncoder(const Weights& w, const VaeConfig& c)
    : in_(w / "encoder" / "conv_in",
          {.in = c.image_channels, .out = c.encoder_stem(), .time = kFlat}),
      levels_(residual_encoder_levels(w / "encoder" / "down_blocks", c)),
      mid_(w / "encoder" / "mid_block", c.widths.back(), kFlat),
      norm_(w / "encoder" / "norm_out", c.widths.back()),
      out_(w / "encoder" / "conv_out",
           {.in = c.widths.back(), .out = 2 * c.latent_channels, .time = kFlat}),
      quant_(
          w / "quant_conv",
          {.in = 2 * c.latent_channels, .out = 2 * c.latent_channels, .kernel = 1, .time = kFlat}) {
}

Tensor ResidualWanEncoder::operator()(const Tensor& picture) const {
  auto x = in_(picture);
  for (const auto& level : levels_) {
    auto y = x;
    for (const auto& resnet : level.resnets) y = resnet(y);
    if (level.resample) y = level.resample->halving(y);
    x = y.add_((*level.shortcut)(x));
    give_back_free_memory();  // the next level's sizes are others
  }
  return quant_(out_.of_normed(mid_(x), norm_));
}

ResidualWanDecoder::ResidualWanDecoder(const Weights& w, const VaeConfig& c)
    : post_quant_(w / "post_quant_conv",
                  {.in = c.latent_channels, .out = c.latent_channels, .kernel = 1, .time = kFlat}),
      in_(w / "decoder" / "conv_in",
          {.in = c.latent_channels, .out = c.decoder_widths().back(), .time = kFlat}),
      mid_(w / "decoder" / "mid_block", c.decoder_widths().back(), kFlat),
      levels_(residual_decoder_levels(w / "decoder" / "up_blocks", c)),
      norm_(w / "decoder" / "norm_out", c.decoder_widths().front()),
      out_(w / "decoder" / "conv_out",
           {.in = c.decoder_widths().front(), .out = c.image_channels, .time = kFlat}) {}

Tensor ResidualWanDecoder::operator()(const Tensor& latents) const {
  auto x = mid_(in_(post_quant_(latents)));
  for (const auto& level : levels_) {
    auto y = x;
    for (const auto& resnet : level.resnets) y = resnet(y);
    if (level.resample) y = level.resample->of_doubled(y);
    x = level.shortcut ? y.add_((*level.shortcut)(x)) : y;
  }
  return out_.of_normed(x, norm_);
}

}  // namespace braid
