#include "models/qwen21/config.h"

#include "base/error.h"
#include "models/qwen21/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxQwen21Width = 1 << 20, kMaxQwen21Blocks = 10'000,
                       kMaxQwen21Heads = 1 << 14;

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, qwen21_names(checkpoint), "Qwen-Image-2.1 transformer"};
}

}  // namespace

Qwen21Config read_qwen21_config(const JsonObject& json) {
  json.check_class("QwenImage21Transformer2DModel");
  Qwen21Config c;
  json.integer_or("patch_size", 1, 1, 1);
  c.token_width = json.integer_or("in_channels", c.token_width, 1, kMaxQwen21Width);
  json.integer_or("out_channels", c.token_width, c.token_width, c.token_width);
  c.num_layers = json.integer_or("num_layers", c.num_layers, 1, kMaxQwen21Blocks);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, kMaxQwen21Heads);
  c.hidden = c.num_heads * json.integer_or("attention_head_dim", 128, 2, kMaxQwen21Width);
  c.mlp_hidden = c.hidden * json.integer_or("mlp_ratio", 3, 1, 1024);
  c.text_width = json.integer_or("context_in_dim", c.text_width, 1, kMaxQwen21Width);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxQwen21Width);
  c.norm_eps = json.number_or("eps", c.norm_eps);
  require(c.norm_eps >= 0, json.source(), ": 'eps' should not be below 0, it is ", c.norm_eps);
  c.causal_condition = json.is_set("causal_condition");
  check_rope_widths(c.axes, 3, c.head_width(), "axes_dims_rope", json.source());
  return c;
}

void adopt_blocks(Qwen21Config& c, const Checkpoint& checkpoint) {
  const auto layers = shapes_in(checkpoint).num_blocks("transformer_blocks", "attn.norm_q.weight");
  if (layers > 0) c.num_layers = layers;  // else another model
}

Qwen21Config infer_qwen21_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  Qwen21Config c;
  adopt_blocks(c, checkpoint);
  c.hidden = stored.extent("img_in.weight", 0);
  c.token_width = stored.extent("img_in.weight", 1);
  c.text_width = stored.extent("txt_in.text_norm.weight", 0);
  c.mlp_hidden = stored.extent("transformer_blocks.0.img_mlp.out.weight", 1);
  const auto head = stored.extent("transformer_blocks.0.attn.norm_q.weight", 0);
  c.num_heads = stored.num_heads(c.hidden, head);
  check_rope_widths(c.axes, 3, c.head_width(), "axes_dims_rope", checkpoint.source());
  return c;
}

}  // namespace braid
