#include "models/krea2/config.h"

#include "base/error.h"
#include "models/krea2/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000, kMaxHeads = 1 << 14;

void check_groups(const Krea2Widths& w, const char* heads, const char* kv_heads,
                  const std::string& source) {
  require(w.num_heads % w.num_kv_heads == 0, source, ": '", kv_heads, "', ", w.num_kv_heads,
          ", should divide '", heads, "', ", w.num_heads);
}

// The reference class takes a null for as many heads as queries have.
std::int64_t read_kv_heads(const JsonObject& json, const char* key, const Krea2Widths& w) {
  return json.integer_or(key, json.is_null(key) ? w.num_heads : w.num_kv_heads, 1, kMaxHeads);
}

Krea2Widths read_image_widths(const JsonObject& json, Krea2Widths w) {
  w.num_heads = json.integer_or("num_attention_heads", w.num_heads, 1, kMaxHeads);
  w.num_kv_heads = read_kv_heads(json, "num_key_value_heads", w);
  w.hidden = w.num_heads * json.integer_or("attention_head_dim", 128, 2, kMaxWidth);
  w.mlp_hidden = json.integer_or("intermediate_size", w.mlp_hidden, 1, kMaxWidth);
  check_groups(w, "num_attention_heads", "num_key_value_heads", json.source());
  return w;
}

Krea2Widths read_text_widths(const JsonObject& json, Krea2Widths w) {
  w.num_heads = json.integer_or("text_num_attention_heads", w.num_heads, 1, kMaxHeads);
  w.num_kv_heads = read_kv_heads(json, "text_num_key_value_heads", w);
  w.hidden = json.integer_or("text_hidden_dim", w.hidden, 1, kMaxWidth);
  w.mlp_hidden = json.integer_or("text_intermediate_size", w.mlp_hidden, 1, kMaxWidth);
  require(w.hidden % w.num_heads == 0, json.source(), ": 'text_num_attention_heads', ", w.num_heads,
          ", should divide 'text_hidden_dim', ", w.hidden);
  check_groups(w, "text_num_attention_heads", "text_num_key_value_heads", json.source());
  return w;
}

// How many blocks the list has.
std::int64_t num_blocks(const StoredShapes& stored, const std::string& list) {
  return stored.num_blocks(list, "norm1.weight");
}

// The sizes of a list's first block.
Krea2Widths widths_of(const StoredShapes& stored, const std::string& list) {
  const auto block = list + ".0.";
  const auto hidden = stored.extent(block + "norm1.weight", 0);
  const auto head = stored.extent(block + "attn.norm_q.weight", 0);
  return {.hidden = hidden,
          .num_heads = stored.num_heads(hidden, head),
          .num_kv_heads = stored.extent(block + "attn.kv.weight", 0) / head,
          .mlp_hidden = stored.extent(block + "mlp.gate_up.weight", 0)};
}

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, krea2_names(checkpoint), "Krea 2 transformer"};
}

}  // namespace

Krea2Config read_krea2_config(const JsonObject& json) {
  json.check_class("Krea2Transformer2DModel");
  Krea2Config c;
  c.token_width = json.integer_or("in_channels", c.token_width, 1, kMaxWidth);
  c.image = read_image_widths(json, c.image);
  c.num_layers = json.integer_or("num_layers", c.num_layers, 0, kMaxBlocks);
  c.sinusoid = json.integer_or("timestep_embed_dim", c.sinusoid, 2, kMaxWidth);
  require(c.sinusoid % 2 == 0, json.source(), ": 'timestep_embed_dim' should be even, it is ",
          c.sinusoid);
  c.text = read_text_widths(json, c.text);
  c.num_taps = json.integer_or("num_text_layers", c.num_taps, 1, 1000);
  c.num_tap_blocks = json.integer_or("num_layerwise_text_blocks", c.num_tap_blocks, 0, kMaxBlocks);
  c.num_text_blocks = json.integer_or("num_refiner_text_blocks", c.num_text_blocks, 0, kMaxBlocks);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxWidth);
  c.theta = json.number_or("rope_theta", c.theta);
  c.norm_eps = json.number_or("norm_eps", c.norm_eps);
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  require(c.norm_eps >= 0, json.source(), ": 'norm_eps' should not be below 0, it is ", c.norm_eps);
  check_rope_widths(c.axes, 3, c.image.head_width(), "axes_dims_rope", json.source());
  return c;
}

void adopt_blocks(Krea2Config& c, const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  const auto layers = num_blocks(stored, "transformer_blocks");
  if (layers == 0) return;  // another model
  c.num_layers = layers;
  c.num_tap_blocks = num_blocks(stored, "text_fusion.0.layerwise_blocks");
  c.num_text_blocks = num_blocks(stored, "text_fusion.0.refiner_blocks");
}

Krea2Config infer_krea2_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  Krea2Config c;
  adopt_blocks(c, checkpoint);
  c.token_width = stored.extent("img_in.weight", 1);
  c.sinusoid = stored.extent("time_embed.linear_1.weight", 1);
  c.image = widths_of(stored, "transformer_blocks");
  c.num_taps = stored.extent("text_fusion.0.projector.weight", 1);
  const bool has_text_blocks = c.num_tap_blocks + c.num_text_blocks > 0;
  if (has_text_blocks)
    c.text = widths_of(stored, c.num_tap_blocks > 0 ? "text_fusion.0.layerwise_blocks"
                                                    : "text_fusion.0.refiner_blocks");
  check_groups(c.image, "heads of queries", "heads of keys", checkpoint.source());
  check_rope_widths(c.axes, 3, c.image.head_width(), "axes_dims_rope", checkpoint.source());
  return c;
}

}  // namespace braid
