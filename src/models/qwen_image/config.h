// The sizes of a Qwen-Image transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "models/flux/config.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"
#include "weights/files/checkpoint.h"

namespace braid {

// The timestep that modulates the tokens of references: the step's, or 0, as in Edit-2511.
enum class ReferenceTime { kOfStep, kZero };

// What it draws: one picture, or as Layered the layers of one. Layered adds an embedding to that of
// the timestep.
enum class QwenImageDraws { kPicture, kLayers };

// Defaults are Qwen-Image's, and the reference class's.
struct QwenImageConfig {
  std::int64_t in_channels = 64;  // packed latents: 2 x 2 of the autoencoder's channels
  std::int64_t out_channels = 64;
  std::int64_t num_layers = 60;
  std::int64_t num_heads = 24, head_width = 128;
  std::int64_t text_width = 3584;
  std::vector<std::int64_t> axes = {16, 56, 56};  // head width per axis: item, row, column
  ReferenceTime reference_time = ReferenceTime::kOfStep;
  QwenImageDraws draws = QwenImageDraws::kPicture;

  std::int64_t hidden() const { return num_heads * head_width; }
  RopeAxes rope_axes() const { return {.widths = axes, .products = at::kFloat}; }
};

// Reads transformer/config.json. Throws InputError naming the field.
QwenImageConfig read_qwen_image_config(const JsonObject& json);
// Reads the same sizes for another network built of these blocks.
QwenImageConfig read_qwen_image_sizes(const JsonObject& json);

// Takes over the number of blocks from a checkpoint, the timestep of references if it has the mark
// of Edit-2511, and what it draws. Throws InputError for a Layered with that timestep.
void adopt_blocks(QwenImageConfig& config, const Checkpoint& checkpoint);

// Infers the config from the shapes of a single-file checkpoint, which has none. The axes are the
// published ones; throws InputError if the head is too narrow for them.
QwenImageConfig infer_qwen_image_config(const Checkpoint& checkpoint);

// The same sizes as those of a FLUX.1 transformer without single blocks, whose double blocks these
// are.
FluxConfig blocks_of(const QwenImageConfig& config);

// Forecasts count with this.
DenoiserShape qwen_image_shape(const QwenImageConfig& config);

}  // namespace braid
