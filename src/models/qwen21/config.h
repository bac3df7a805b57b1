// The sizes of a Qwen-Image-2.1 transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// Defaults are Qwen-Image-2.1's and the reference class's.
struct Qwen21Config {
  std::int64_t token_width = 64;  // of a latent
  std::int64_t hidden = 4096, num_heads = 32, mlp_hidden = 3 * 4096;
  std::int64_t num_layers = 32;
  std::int64_t text_width = 4096;
  std::vector<std::int64_t> axes = {16, 56, 56};  // head width per position axis
  double norm_eps = 1e-6;
  bool causal_condition = true;  // text and references have timestep 0, not the step's

  std::int64_t head_width() const { return hidden / num_heads; }
  RopeAxes rope_axes() const { return {.widths = axes, .products = at::kFloat}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
Qwen21Config read_qwen21_config(const JsonObject& json);

// Takes over the number of blocks from a checkpoint, which may differ from the config of the model
// that it was tuned from.
void adopt_blocks(Qwen21Config& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none; the rest is
// Qwen-Image-2.1's. Throws InputError if the heads are not as wide as the axes.
Qwen21Config infer_qwen21_config(const Checkpoint& checkpoint);

// Forecasts count with this.
DenoiserShape qwen21_shape(const Qwen21Config& config);

}  // namespace braid
