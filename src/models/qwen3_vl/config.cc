#include "models/qwen3_vl/config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/causal_lm/picture_places.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxVisionWidth = 1 << 20;

void check_vision(const VisionConfig& c, const std::string& source) {
  require(c.hidden % c.num_heads == 0 && c.head_width() % 4 == 0, source, ": 'num_heads', ",
          c.num_heads, ", should divide 'hidden_size', ", c.hidden, ", into multiples of 4");
  for (const auto block : c.deepstack)
    require(block < c.depth, source, ": 'deepstack_visual_indexes' should be below 'depth', ",
            c.depth, ", one is ", block);
}

VisionConfig read_vision_config(const JsonObject& json) {
  VisionConfig c;
  c.depth = json.integer_or("depth", c.depth, 1, 10'000);
  c.hidden = json.integer_or("hidden_size", c.hidden, 4, kMaxVisionWidth);
  c.num_heads = json.integer_or("num_heads", c.num_heads, 1, 1 << 14);
  c.mlp_hidden = json.integer_or("intermediate_size", c.mlp_hidden, 1, kMaxVisionWidth);
  json.integer_or("in_channels", 3, 3, 3);
  c.patch = json.integer_or("patch_size", c.patch, 1, 1024);
  c.frames = json.integer_or("temporal_patch_size", c.frames, 1, 1024);
  c.merge = json.integer_or("spatial_merge_size", c.merge, 1, 64);
  const auto positions = json.integer_or("num_position_embeddings", 2304, 1, 1 << 24);
  c.grid = std::int64_t(std::lround(std::sqrt(double(positions))));
  require(c.grid * c.grid == positions, json.source(),
          ": 'num_position_embeddings' should be a square, it is ", positions);
  c.out = json.integer_or("out_hidden_size", 3584, 1, kMaxVisionWidth);
  c.deepstack = json.integers_or("deepstack_visual_indexes", c.deepstack, 0, 10'000);
  require(std::is_sorted(c.deepstack.begin(), c.deepstack.end(), std::less_equal<>()),
          json.source(), ": 'deepstack_visual_indexes' should rise");
  c.theta = read_axial_theta(json);
  const auto activation = json.string_or("hidden_act", "gelu_pytorch_tanh");
  require(activation == "gelu_pytorch_tanh", json.source(),
          ": 'hidden_act' should be gelu_pytorch_tanh, it is ", activation);
  check_vision(c, json.source());
  return c;
}

}  // namespace

Qwen3VlConfig read_qwen3_vl_config(const JsonObject& json) {
  const auto type = json.string_or("model_type", "");
  require(type == "qwen3_vl", json.source(), ": 'model_type' should be qwen3_vl, it is '", type,
          "'");
  const JsonObject text(json.at("text_config"), json.source() + ": 'text_config'");
  const JsonObject vision(json.at("vision_config"), json.source() + ": 'vision_config'");
  Qwen3VlConfig c;
  c.text = read_qwen3_vl_text_config(text);
  c.vision = read_vision_config(vision);
  c.sections = read_mrope_sections(text, {24, 20, 20}, c.text.head_width);
  c.image_token = json.integer_or("image_token_id", c.image_token, 0, c.text.vocab_size - 1);
  require(c.vision.out == c.text.hidden, json.source(), ": 'out_hidden_size', ", c.vision.out,
          ", should be the language model's 'hidden_size', ", c.text.hidden);
  return c;
}

}  // namespace braid
