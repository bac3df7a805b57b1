// The sizes of a FLUX.2 transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// Defaults are FLUX.2-dev's.
struct Flux2Config {
  std::int64_t in_channels = 128;  // packed latents: 2 x 2 of the autoencoder's channels
  std::int64_t out_channels = 128;
  std::int64_t num_double = 8, num_single = 48;  // blocks
  std::int64_t num_heads = 48, head_width = 128;
  std::int64_t mlp_hidden = 18432;
  std::int64_t text_width = 15360;
  std::int64_t sinusoid = 256;  // width of an embedded timestep or guidance scale
  bool guidance_embeds = true;
  std::vector<std::int64_t> axes = {32, 32, 32, 32};  // head width per position axis
  double theta = 2000;

  std::int64_t hidden() const { return num_heads * head_width; }
  RopeAxes rope_axes() const { return {.widths = axes, .theta = theta}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
Flux2Config read_flux2_config(const JsonObject& json);

// Takes over the numbers of blocks and whether there is guidance from a checkpoint, which may
// differ from the config of the model that it was tuned from.
void adopt_blocks(Flux2Config& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none. The axes and theta
// are FLUX.2's; throws InputError if the head is too narrow for them.
Flux2Config infer_flux2_config(const Checkpoint& checkpoint);

// Forecasts count with this.
DenoiserShape flux2_shape(const Flux2Config& config);

}  // namespace braid
