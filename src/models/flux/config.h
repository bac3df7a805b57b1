// The sizes of a FLUX.1 transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// Defaults are FLUX.1-dev's, except `guidance_embeds`, which is the reference class's.
struct FluxConfig {
  std::int64_t in_channels = 64;  // packed latents: 2 x 2 of the autoencoder's channels
  std::int64_t out_channels = 64;
  std::int64_t num_double = 19, num_single = 38;  // blocks
  std::int64_t num_heads = 24, head_width = 128;
  std::int64_t text_width = 4096, pooled_width = 768;
  bool guidance_embeds = false;
  std::vector<std::int64_t> axes = {16, 56, 56};  // head width per position axis

  std::int64_t hidden() const { return num_heads * head_width; }
  std::int64_t mlp_hidden() const { return 4 * hidden(); }
  RopeAxes rope_axes() const { return {.widths = axes}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
FluxConfig read_flux_config(const JsonObject& json);
// Reads the same fields for another network built of these blocks.
FluxConfig read_flux_blocks_config(const JsonObject& json);

// Takes over the numbers of blocks and whether there is guidance from a checkpoint, which may
// differ from the config of the model that it was tuned from: FLUX.1-lite, Flex.1, de-distilled
// ones.
void adopt_blocks(FluxConfig& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none. The axes are
// FLUX.1's; throws InputError if the head is too narrow for them.
FluxConfig infer_flux_config(const Checkpoint& checkpoint);

}  // namespace braid
