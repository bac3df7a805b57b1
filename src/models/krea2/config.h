// The sizes of a Krea 2 transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// The sizes of one kind of block.
struct Krea2Widths {
  std::int64_t hidden = 0, num_heads = 0, num_kv_heads = 0, mlp_hidden = 0;

  std::int64_t head_width() const { return hidden / num_heads; }
  std::int64_t kv_width() const { return num_kv_heads * head_width(); }
};

// Defaults are Krea 2's and the reference class's.
struct Krea2Config {
  std::int64_t token_width = 64;  // of 2 x 2 latents
  Krea2Widths image = {.hidden = 6144, .num_heads = 48, .num_kv_heads = 12, .mlp_hidden = 16384};
  std::int64_t num_layers = 28;
  std::int64_t sinusoid = 256;  // width of the embedded timestep before its dense layers
  // The text arrives as hidden states of several layers of its encoder: taps.
  Krea2Widths text = {.hidden = 2560, .num_heads = 20, .num_kv_heads = 20, .mlp_hidden = 6912};
  std::int64_t num_taps = 12;
  std::int64_t num_tap_blocks = 2;   // attend across the taps of one token
  std::int64_t num_text_blocks = 2;  // attend across the tokens, after the taps were mixed
  std::vector<std::int64_t> axes = {32, 48, 48};  // head width per position axis
  double theta = 1000, norm_eps = 1e-5;

  // What makes one run of text tokens of the taps counts as one block, after the others.
  std::int64_t num_blocks() const { return num_layers + 1; }
  RopeAxes rope_axes() const { return {.widths = axes, .theta = theta}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
Krea2Config read_krea2_config(const JsonObject& json);

// Takes over the numbers of blocks from a checkpoint, which may differ from the config of the model
// that it was tuned from.
void adopt_blocks(Krea2Config& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none; the rest is Krea
// 2's. Throws InputError if the heads are not as wide as the axes.
Krea2Config infer_krea2_config(const Checkpoint& checkpoint);

// Forecasts count with this.
DenoiserShape krea2_shape(const Krea2Config& config);

}  // namespace braid
