#include "models/vae/model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/free_memory.h"
#include "models/vae/tiles.h"

namespace braid {
namespace {

constexpr std::int64_t kPatch = 2;  // side of the patch that packed latents combine

// Maps one picture at a time.
Tensor map_batch(const Tensor& x, const std::function<Tensor(const Tensor&)>& map) {
  std::vector<Tensor> out;
  for (const auto& one : x.split(1)) out.push_back(map(one));
  return at::cat(out);
}

// A side that is no whole number of latents is rounded down to one.
Tiling decoder_tiling(const VaeConfig& c) {
  const auto latents = c.sample_size / c.downscale();
  return {.in_size = latents, .out_size = latents * c.downscale()};
}

ConvShape pointwise(std::int64_t width) {
  return {.in = width, .out = width, .kernel = 1, .padding = 0};
}

// Per-channel numbers, in the dtype of `like`.
Tensor over_channels(const std::vector<double>& numbers, const Tensor& like) {
  return at::tensor(numbers, at::kDouble).to(like.options()).view({-1, 1, 1});
}

// Tiles overlap by a quarter, rounded up: smaller ones would not advance.
bool can_be_cut(const VaeConfig& c, Tiles tiles) {
  constexpr std::int64_t kSmallestTile = 2;  // latents
  return tiles == Tiles::kWhereLarger && decoder_tiling(c).in_size >= kSmallestTile;
}

bool are_cut(const VaeConfig& c, const Tensor& latents, Tiles tiles) {
  const auto largest = decoder_tiling(c).in_size;
  return can_be_cut(c, tiles) && (latents.size(2) > largest || latents.size(3) > largest);
}

}  // namespace

VaeEncoder::VaeEncoder(const Weights& w, const VaeConfig& c)
    : in_(w / "conv_in", {.in = c.image_channels, .out = c.widths.front()}),
      mid_(w / "mid_block", c.widths.back(), c),
      norm_(w / "conv_norm_out", c.widths.back(), c.norm_groups),
      out_(w / "conv_out", {.in = c.widths.back(), .out = 2 * c.latent_channels}) {
  auto width = c.widths.front();
  for (std::size_t i = 0; i < c.widths.size(); ++i) {
    const auto level = w / "down_blocks" / std::int64_t(i);
    levels_.push_back(
        {load_resnets(level / "resnets", width, c.widths[i], c.layers_per_block, c.norm_groups),
         {}});
    width = c.widths[i];
    if (i + 1 < c.widths.size())
      levels_.back().downsample.emplace(
          level / "downsamplers" / 0 / "conv",
          ConvShape{.in = width, .out = width, .stride = 2, .padding = 0});
  }
}

Tensor VaeEncoder::operator()(const Tensor& picture) const {
  auto x = in_(picture);
  for (const auto& level : levels_) {
    for (const auto& resnet : level.resnets) x = resnet.in_place(x);
    if (!level.downsample) continue;
    x = level.downsample->halving(x);
    give_back_free_memory();  // the next level's sizes are others
  }
  return out_.of_normed(mid_(x), norm_);
}

VaeDecoder::VaeDecoder(const Weights& w, const VaeConfig& c)
    : in_(w / "conv_in", {.in = c.latent_channels, .out = c.decoder_widths().back()}),
      mid_(w / "mid_block", c.decoder_widths().back(), c),
      norm_(w / "conv_norm_out", c.decoder_widths().front(), c.norm_groups),
      out_(w / "conv_out", {.in = c.decoder_widths().front(), .out = c.image_channels}) {
  auto widths = c.decoder_widths();
  std::reverse(widths.begin(), widths.end());  // coarsest first
  auto width = widths.front();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto level = w / "up_blocks" / std::int64_t(i);
    levels_.push_back(
        {load_resnets(level / "resnets", width, widths[i], c.layers_per_block + 1, c.norm_groups),
         {}});
    width = widths[i];
    if (i + 1 < widths.size())
      levels_.back().upsample.emplace(level / "upsamplers" / 0 / "conv",
                                      ConvShape{.in = width, .out = width});
  }
}

Tensor VaeDecoder::operator()(const Tensor& latents) const {
  auto x = mid_(in_(latents));
  for (const auto& level : levels_) {
    for (const auto& resnet : level.resnets) x = resnet(x);
    if (level.upsample) x = level.upsample->of_doubled(x);
  }
  return out_.of_normed(x, norm_);
}

Vae::Vae(const VaeConfig& c, const Weights& w, Parts parts) : config_(c) {
  if (parts == Parts::kEncoder) {
    (w / "decoder").skip();
    (w / "post_quant_conv").skip();
  } else {
    load_decoder(w);
  }
  if (c.batch_norm_eps)
    packed_norm_.emplace(w / "bn", kPatch * kPatch * c.latent_channels, *c.batch_norm_eps);
  if (parts == Parts::kDecoder) {
    (w / "encoder").skip();
    (w / "quant_conv").skip();
  } else {
    load_encoder(w);
  }
  w.finish();
}

void Vae::load_decoder(const Weights& w) {
  if (config_.is_residual()) {
    residual_decoder_.emplace(w, config_);
    return;
  }
  if (config_.is_wan()) {
    wan_decoder_.emplace(w, config_);
    return;
  }
  decoder_.emplace(w / "decoder", config_);
  if (config_.post_quant_conv)
    post_quant_.emplace(w / "post_quant_conv", pointwise(config_.latent_channels));
}

void Vae::load_encoder(const Weights& w) {
  if (config_.is_residual()) {
    residual_encoder_.emplace(w, config_);
    return;
  }
  if (config_.is_wan()) {
    wan_encoder_.emplace(w, config_);
    return;
  }
  encoder_.emplace(w / "encoder", config_);
  if (config_.quant_conv) quant_.emplace(w / "quant_conv", pointwise(2 * config_.latent_channels));
}

Tensor Vae::decode_tile(const Tensor& latents) const {
  check(decoder_ || wan_decoder_ || residual_decoder_,
        "this autoencoder was loaded without its decoder");
  if (residual_decoder_) return (*residual_decoder_)(latents);
  if (wan_decoder_) return (*wan_decoder_)(latents);
  return (*decoder_)(post_quant_ ? (*post_quant_)(latents) : latents);
}

Tensor Vae::encode_tile(const Tensor& picture) const {
  if (residual_encoder_) return (*residual_encoder_)(picture);
  if (wan_encoder_) return (*wan_encoder_)(picture);
  const auto moments = (*encoder_)(picture);
  return quant_ ? (*quant_)(moments) : moments;
}

Tensor Vae::decode(const Tensor& latents, Tiles tiles,
                   const std::function<void()>& before_tile) const {
  const auto decode_next = [&](const Tensor& tile) {
    before_tile();
    return decode_tile(tile);
  };
  return map_batch(latents, [&](const Tensor& one) {
    if (!are_cut(config_, one, tiles)) return decode_next(one);
    return map_tiles(one, decoder_tiling(config_), decode_next);
  });
}

std::vector<Tensor> Vae::tiles_of(const Tensor& latents, Tiles tiles) const {
  if (!are_cut(config_, latents, tiles)) return {latents};
  return cut_tiles(latents, decoder_tiling(config_));
}

Tensor Vae::join_tiles(const Tensor& latents, std::vector<Tensor> decoded) const {
  if (decoded.size() == 1) return decoded.front();
  std::size_t next = 0;
  return map_tiles(latents, decoder_tiling(config_),
                   [&](const Tensor&) { return std::move(decoded[next++]); });
}

VaeMoments Vae::encode(const Tensor& pictures, Tiles tiles,
                       const std::function<void()>& before_tile) const {
  check(encoder_ || wan_encoder_ || residual_encoder_,
        "this autoencoder was loaded without its encoder");
  const KeepFreedMemory keep;  // a level's blocks repeat its sizes
  const auto [latents, pixels] = decoder_tiling(config_);
  const Tiling tiling{.in_size = pixels, .out_size = latents};
  const bool larger = pictures.size(2) > tiling.in_size || pictures.size(3) > tiling.in_size;
  const auto encode_next = [&](const Tensor& tile) {
    before_tile();
    return encode_tile(tile);
  };
  const auto moments = map_batch(pictures, [&](const Tensor& one) {
    if (!can_be_cut(config_, tiles) || !larger) return encode_next(one);
    return map_tiles(one, tiling, encode_next);
  });
  const auto halves = moments.chunk(2, 1);
  return {.mean = halves[0], .logvar = halves[1].clamp(-30, 20)};
}

Tensor Vae::to_decoder(const Tensor& latents) const {
  if (packed_norm_) return at::pixel_shuffle(packed_norm_->undo(latents), kPatch);
  if (config_.is_wan())
    return latents * over_channels(config_.latents_std, latents) +
           over_channels(config_.latents_mean, latents);
  return latents / config_.scaling_factor + config_.shift_factor;
}

Tensor Vae::from_encoder(const Tensor& latents) const {
  if (packed_norm_) return (*packed_norm_)(at::pixel_unshuffle(latents, kPatch));
  return scaled_latents(config_, latents);
}

Tensor scaled_for_nets(const VaeConfig& config, const Tensor& latents) {
  if (!config.is_wan()) return scaled_latents(config, latents);
  const auto in_float = latents.to(at::kFloat);
  const auto scaled = (in_float - over_channels(config.latents_mean, in_float)) *
                      (1 / over_channels(config.latents_std, in_float));
  return scaled.to(latents.scalar_type());
}

Tensor scaled_latents(const VaeConfig& config, const Tensor& latents) {
  if (config.is_wan())
    return (latents - over_channels(config.latents_mean, latents)) /
           over_channels(config.latents_std, latents);
  return (latents - config.shift_factor) * config.scaling_factor;
}

}  // namespace braid
