// The sizes of a Z-Image transformer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// A picture's tokens and its text tokens are each padded to a multiple of this.
constexpr std::int64_t kZImageRun = 32;

// Defaults are Z-Image's and the reference class's.
struct ZImageConfig {
  std::int64_t in_channels = 16;  // of latents
  std::int64_t hidden = 3840, num_heads = 30;
  std::int64_t num_layers = 30;
  std::int64_t num_refiners = 2;  // blocks for image tokens alone, and as many for text tokens
  std::int64_t text_width = 2560;
  std::vector<std::int64_t> axes = {32, 48, 48};              // head width per position axis
  std::vector<std::int64_t> axis_lengths = {1024, 512, 512};  // positions are below these
  double theta = 256, time_scale = 1000, norm_eps = 1e-5;
  bool qk_norm = true;  // queries and keys are normed

  std::int64_t head_width() const { return hidden / num_heads; }
  std::int64_t token_width() const { return 4 * in_channels; }  // 2 x 2 latents
  std::int64_t mlp_hidden() const { return std::int64_t(double(hidden) / 3 * 8); }
  std::int64_t condition_width() const { return std::min<std::int64_t>(hidden, 256); }
  RopeAxes rope_axes() const { return {.widths = axes, .theta = theta, .angles = at::kFloat}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
ZImageConfig read_zimage_config(const JsonObject& json);

// Takes over the numbers of blocks from a checkpoint, which may differ from the config of the model
// that it was tuned from.
void adopt_blocks(ZImageConfig& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none; the rest is
// Z-Image's. Throws InputError if the head is too narrow for the axes.
ZImageConfig infer_zimage_config(const Checkpoint& checkpoint);

// Forecasts count with this.
DenoiserShape zimage_shape(const ZImageConfig& config);

}  // namespace braid
