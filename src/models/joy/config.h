// The sizes of a JoyAI-Image-Edit transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// Rotary positions of text tokens: none, or places after those of the pictures.
enum class JoyTextRope { kNone, kBehindPictures };

// Defaults are JoyAI-Image-Edit's.
struct JoyConfig {
  std::int64_t latent_channels = 16, out_channels = 16;
  std::int64_t hidden = 4096, num_heads = 32, mlp_hidden = 16384;
  std::int64_t num_layers = 40;
  std::int64_t text_width = 4096;
  std::vector<std::int64_t> axes = {16, 56, 56};  // head width per axis: item, row, column
  double theta = 256;
  JoyTextRope text_rope = JoyTextRope::kNone;

  std::int64_t head_width() const { return hidden / num_heads; }
  RopeAxes rope_axes() const {
    return {.widths = axes, .theta = theta, .angles = at::kFloat, .products = at::kFloat};
  }
};

// Reads transformer/config.json of Edit or Edit-Plus. Throws InputError naming the field.
JoyConfig read_joy_config(const JsonObject& json);

// Takes over the number of blocks from a checkpoint.
void adopt_blocks(JoyConfig& config, const Checkpoint& checkpoint);

// Forecasts count with this.
DenoiserShape joy_shape(const JoyConfig& config);

}  // namespace braid
