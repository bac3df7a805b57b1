// The sizes of a FLUX.3 transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// Defaults are FLUX.3 klein base's and the reference class's.
struct Flux3Config {
  std::int64_t token_width = 128;      // packed latents: 2 x 2 of the autoencoder's channels
  std::int64_t reference_width = 128;  // the same of a reference
  std::int64_t num_mode = 5;           // blocks of each mode: text, image, references
  std::int64_t num_single = 28;        // blocks of all tokens together
  std::int64_t num_heads = 24, head_width = 128;
  std::int64_t mlp_hidden = 9216;
  std::int64_t text_width = 20480;
  std::int64_t sinusoid = 256;  // width of an embedded timestep before its dense layers
  // Whether the model is distilled to few steps and is told where each of them leads.
  bool flow_map = false;
  std::vector<std::int64_t> axes = {32, 32, 32, 32};  // head width per position axis
  double theta = 10000;
  double norm_eps = 1e-6;

  std::int64_t hidden() const { return num_heads * head_width; }
  std::int64_t num_blocks() const { return 3 * num_mode + num_single; }
  RopeAxes rope_axes() const { return {.widths = axes, .theta = theta}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
Flux3Config read_flux3_config(const JsonObject& json);

// Takes over the numbers of blocks and whether there is a flow map from a checkpoint, which may
// differ from the config of the model that it was tuned from.
void adopt_blocks(Flux3Config& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none. The axes and theta
// are FLUX.3's; throws InputError if the head is too narrow for them.
Flux3Config infer_flux3_config(const Checkpoint& checkpoint);

// Forecasts count with this.
DenoiserShape flux3_shape(const Flux3Config& config);

}  // namespace braid
