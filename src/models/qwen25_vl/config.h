// The sizes of a Qwen2.5-VL: a vision tower with window attention, and the language model that
// reads its tokens.
#pragma once

#include <vector>

#include "models/causal_lm/config.h"
#include "models/qwen3_vl/patches.h"

namespace braid {

// Defaults are those of Qwen2.5-VL-7B.
struct WindowVisionConfig {
  std::int64_t depth = 32, hidden = 1280, num_heads = 16, mlp_hidden = 3420;
  std::int64_t patch = 14, frames = 2, merge = 2;  // PatchForm's
  std::int64_t window = 112;  // pixels along each side, within which patches attend
  std::int64_t out = 3584;    // token width
  double theta = 10000;       // of the rotary embedding
  std::vector<std::int64_t> whole = {7, 15, 23, 31};  // blocks that attend to the whole picture

  std::int64_t head_width() const { return hidden / num_heads; }
  PatchForm form() const { return {.patch = patch, .frames = frames, .merge = merge}; }
  AxialRope rope() const { return {.head_width = head_width(), .merge = merge, .theta = theta}; }
  std::int64_t tokens_per_window() const { return window / form().pixels_per_token(); }  // a side
};

// The language model of Qwen2.5-VL-7B.
inline constexpr CausalLmConfig kQwen25VlLanguageModel = {
    .vocab_size = 152064,
    .hidden = 3584,
    .mlp_hidden = 18944,
    .num_layers = 28,
    .num_heads = 28,
    .num_kv_heads = 4,
    .head_norm = HeadNorm::kNo,
    .attention_bias = AttentionBias::kInputs,
};

struct Qwen25VlConfig {
  CausalLmConfig text = kQwen25VlLanguageModel;
  WindowVisionConfig vision = {};
  // How many of a head's angles belong to time, rows and columns, one after the other.
  std::vector<std::int64_t> sections = {16, 24, 24};
  std::int64_t image_token = 151655;
};

// Reads text_encoder/config.json, whose language model stands in `text_config` or, in older files,
// beside the rest. Throws InputError naming the field.
Qwen25VlConfig read_qwen25_vl_config(const JsonObject& json);

}  // namespace braid
