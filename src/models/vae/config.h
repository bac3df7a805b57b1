// The sizes of an AutoencoderKL, an AutoencoderKLFlux2 or, for single pictures, an
// AutoencoderKLWan, AutoencoderKLQwenImage or AutoencoderKLQwenImage21.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"

namespace braid {

// Defaults are FLUX.1's.
struct VaeConfig {
  std::int64_t image_channels = 3, latent_channels = 16;
  std::vector<std::int64_t> widths = {128, 256, 512, 512};  // per level, finest first
  std::vector<std::int64_t> own_decoder_widths = {};        // if the decoder's differ
  std::int64_t own_encoder_stem = 0;  // 0: the encoder's first convolution is as wide as a level
  std::int64_t layers_per_block = 2;
  std::int64_t norm_groups = 32;
  std::int64_t sample_size = 1024;  // pixels; the side of a tile
  bool mid_attention = true;
  bool quant_conv = false, post_quant_conv = false;
  double scaling_factor = 0.3611, shift_factor = 0.1159;
  // FLUX.2: stored statistics normalise the channels of packed latents, instead of scaling.
  std::optional<double> batch_norm_eps = {};
  // Wan: each channel of latents has a mean and a deviation, instead of scaling.
  std::vector<double> latents_mean = {}, latents_std = {};

  // Qwen-Image-2.1: levels have shortcuts beside them. For each resampling from the finest on,
  // whether a video's frames would be resampled, too.
  std::vector<bool> temporal = {};

  bool is_wan() const { return !latents_mean.empty(); }  // or Qwen-Image-2.1's
  bool is_residual() const { return !temporal.empty(); }
  const std::vector<std::int64_t>& decoder_widths() const {
    return own_decoder_widths.empty() ? widths : own_decoder_widths;
  }

  // Channels before the encoder's first level.
  std::int64_t encoder_stem() const {
    return own_encoder_stem > 0 ? own_encoder_stem : widths.front();
  }

  // Pixels per latent, along each side.
  std::int64_t downscale() const { return std::int64_t(1) << (widths.size() - 1); }
};

// Both read vae/config.json of any of these classes. They throw InputError naming the field.
VaeConfig read_vae_config(const JsonObject& json);       // of pictures with three channels
VaeConfig read_rgba_vae_config(const JsonObject& json);  // with three, or with alpha four

// The published configs of Wan 2.1 and Qwen-Image-2.1.
VaeConfig wan_vae_config();
VaeConfig qwen21_vae_config();

VaeConfig flux2_vae_config();  // of FLUX.2 and FLUX.3

}  // namespace braid
