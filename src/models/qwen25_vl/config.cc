#include "models/qwen25_vl/config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/causal_lm/picture_places.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxTowerWidth = 1 << 20;

void check_tower(const WindowVisionConfig& c, const std::string& source) {
  require(c.hidden % c.num_heads == 0 && c.head_width() % 4 == 0, source, ": 'num_heads', ",
          c.num_heads, ", should divide 'hidden_size', ", c.hidden, ", into multiples of 4");
  const auto token = c.form().pixels_per_token();
  require(c.window % token == 0, source, ": 'window_size', ", c.window,
          ", should be a multiple of a token's pixels, ", token);
  for (const auto block : c.whole)
    require(block < c.depth, source, ": 'fullatt_block_indexes' should be below 'depth', ", c.depth,
            ", one is ", block);
}

WindowVisionConfig read_tower(const JsonObject& json) {
  WindowVisionConfig c;
  c.depth = json.integer_or("depth", c.depth, 1, 10'000);
  c.hidden = json.integer_or("hidden_size", 3584, 4, kMaxTowerWidth);
  c.num_heads = json.integer_or("num_heads", c.num_heads, 1, 1 << 14);
  c.mlp_hidden = json.integer_or("intermediate_size", c.mlp_hidden, 1, kMaxTowerWidth);
  json.integer_or("in_channels", 3, 3, 3);
  json.integer_or("in_chans", 3, 3, 3);
  c.patch = json.integer_or("patch_size", c.patch, 1, 1024);
  c.frames = json.integer_or("temporal_patch_size", c.frames, 1, 1024);
  c.merge = json.integer_or("spatial_merge_size", c.merge, 1, 64);
  c.window = json.integer_or("window_size", c.window, 1, 1 << 16);
  c.out = json.integer_or("out_hidden_size", c.out, 1, kMaxTowerWidth);
  c.whole = json.integers_or("fullatt_block_indexes", c.whole, 0, 10'000);
  c.theta = read_axial_theta(json);
  const auto activation = json.string_or("hidden_act", "silu");
  require(activation == "silu" || activation == "swish", json.source(),
          ": 'hidden_act' should be silu, it is ", activation);
  check_tower(c, json.source());
  return c;
}

}  // namespace

Qwen25VlConfig read_qwen25_vl_config(const JsonObject& json) {
  const auto type = json.string_or("model_type", "");
  require(type == "qwen2_5_vl", json.source(), ": 'model_type' should be qwen2_5_vl, it is '", type,
          "'");
  const bool is_nested = json.has("text_config");
  const JsonObject text =
      is_nested ? JsonObject(json.at("text_config"), json.source() + ": 'text_config'") : json;
  const JsonObject vision(json.at("vision_config"), json.source() + ": 'vision_config'");
  Qwen25VlConfig c;
  c.text = read_qwen25_vl_text_config(text);
  c.vision = read_tower(vision);
  c.sections = read_mrope_sections(text, {16, 24, 24}, c.text.head_width);
  c.image_token = json.integer_or("image_token_id", c.image_token, 0, c.text.vocab_size - 1);
  require(c.vision.out == c.text.hidden, json.source(), ": 'out_hidden_size', ", c.vision.out,
          ", should be the language model's 'hidden_size', ", c.text.hidden);
  return c;
}

}  // namespace braid
