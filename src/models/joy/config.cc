#include "models/joy/config.h"

#include "base/error.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20;

void check_heads(const JoyConfig& c, const std::string& source) {
  require(c.hidden % c.num_heads == 0, source, ": 'num_attention_heads', ", c.num_heads,
          ", should divide 'hidden_size', ", c.hidden);
  check_rope_widths(c.axes, 3, c.head_width(), "rope_dim_list", source);
}

JoyTextRope read_text_rope(const JsonObject& json) {
  const auto type = json.string_or("rope_type", "rope");
  require(type == "rope" || type == "mrope", json.source(),
          ": 'rope_type' should be rope or mrope, it is ", type);
  return type == "rope" ? JoyTextRope::kNone : JoyTextRope::kBehindPictures;
}

}  // namespace

JoyConfig read_joy_config(const JsonObject& json) {
  const auto name = json.class_name_or("JoyImageEditTransformer3DModel");
  const bool is_plus = name == "JoyImageEditPlusTransformer3DModel";
  require(name == "JoyImageEditTransformer3DModel" || is_plus, json.source(),
          " should describe a JoyImageEditTransformer3DModel or a "
          "JoyImageEditPlusTransformer3DModel, it describes a ",
          name);
  const std::vector<std::int64_t> patch = {1, 2, 2};
  require(json.integers_or("patch_size", patch, 1, 1024) == patch, json.source(),
          ": 'patch_size' should be [1, 2, 2]");
  JoyConfig c;
  c.latent_channels = json.integer_or("in_channels", c.latent_channels, 1, kMaxWidth);
  c.out_channels = json.integer_or("out_channels", c.latent_channels, 1, kMaxWidth);
  c.hidden = json.integer_or("hidden_size", 3072, 2, kMaxWidth);
  c.num_heads = json.integer_or("num_attention_heads", 24, 1, 1 << 14);
  c.num_layers = json.integer_or("num_layers", 20, 0, 10'000);
  c.text_width = json.integer_or("text_dim", c.text_width, 1, kMaxWidth);
  const auto ratio = json.number_or("mlp_width_ratio", 4);
  c.mlp_hidden = std::int64_t(double(c.hidden) * ratio);
  require(c.mlp_hidden >= 1 && ratio <= 64, json.source(),
          ": 'mlp_width_ratio' should be between 1/", c.hidden, " and 64, it is ", ratio);
  c.axes = json.integers_or("rope_dim_list", c.axes, 0, kMaxWidth);
  c.theta = json.number_or("theta", c.theta);
  require(c.theta > 0, json.source(), ": 'theta' should be above 0, it is ", c.theta);
  if (!is_plus) c.text_rope = read_text_rope(json);  // Plus has the field but ignores it
  check_heads(c, json.source());
  return c;
}

void adopt_blocks(JoyConfig& c, const Checkpoint& checkpoint) {
  const StoredShapes stored(checkpoint, {}, "JoyAI-Image-Edit transformer");
  const auto layers = stored.num_blocks("double_blocks", "img_mod.modulate_table");
  if (layers > 0) c.num_layers = layers;  // else another model
}

// These blocks count like FLUX.1's double blocks (flux/shape.cc), except that modulations are a
// sum. Besides the tokens, the state holds the six modulation vectors.
DenoiserShape joy_shape(const JoyConfig& c) {
  const auto h = double(c.hidden), m = double(c.mlp_hidden);
  return {.hidden = c.hidden,
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width(),
          .in_width = 4 * c.latent_channels,
          .out_width = 4 * c.out_channels,
          .text_width = c.text_width,
          .state_vectors = 6,
          .blocks = {{.name = "double",
                      .count = c.num_layers,
                      .dense_flops = 2 * h * (4 * h + 2 * m),
                      .all_reduces = 2,
                      .peak_elements = {.whole = 3 * h, .shared = 2 * m - 2 * h},
                      .widest_output = m,
                      .kernels = 18,
                      .layers = 8,
                      .traffic_elements = {.whole = 9 * h, .shared = 4 * h},
                      .inputs = {.whole = 2 * h, .shared = h + m},
                      .coded = {.whole = 2 * h, .shared = m},  // all but what attention returns
                      .coded_layers = 6,
                      .gated_sums = 2,
                      .gated_kernels = 2,       // behind the MLP; behind attention they are norms
                      .gated_elements = 5 * h,  // there 2 of 4 widths
                      .activated = {.whole = 0, .shared = 2 * m},
                      .activating_kernels = 2,
                      .has_sides = true}}};
}

}  // namespace braid
