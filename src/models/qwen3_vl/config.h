// The sizes of a Qwen3-VL: a vision tower and the language model that reads its tokens.
#pragma once

#include <vector>

#include "models/causal_lm/config.h"
#include "models/qwen3_vl/patches.h"

namespace braid {

// Defaults are those of Qwen3-VL-8B.
struct VisionConfig {
  std::int64_t depth = 27, hidden = 1152, num_heads = 16, mlp_hidden = 4304;
  std::int64_t patch = 16, frames = 2, merge = 2;     // PatchForm's
  std::int64_t grid = 48;                             // stored positions along each side
  std::int64_t out = 4096;                            // token width
  double theta = 10000;                               // of the rotary embedding
  std::vector<std::int64_t> deepstack = {8, 16, 24};  // blocks whose tokens are also passed on

  std::int64_t head_width() const { return hidden / num_heads; }
  PatchForm form() const { return {.patch = patch, .frames = frames, .merge = merge}; }
  AxialRope rope() const { return {.head_width = head_width(), .merge = merge, .theta = theta}; }
  std::int64_t pixels_per_token() const { return form().pixels_per_token(); }  // along each side
};

struct Qwen3VlConfig {
  CausalLmConfig text = {.hidden = 4096, .mlp_hidden = 12288, .theta = 5e6};
  VisionConfig vision = {};
  // How many of a head's angles belong to time, rows and columns.
  std::vector<std::int64_t> sections = {24, 20, 20};
  std::int64_t image_token = 151655;
  // The last layer's output is taken before features of pictures are added to it.
  bool last_layer_is_plain = false;
};

// Reads text_encoder/config.json. Throws InputError naming the field.
Qwen3VlConfig read_qwen3_vl_config(const JsonObject& json);

}  // namespace braid
