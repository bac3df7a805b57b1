#include "models/flux/config.h"

#include "base/error.h"
#include "models/flux/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000;

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, flux_names(checkpoint), "FLUX transformer"};
}

}  // namespace

FluxConfig read_flux_config(const JsonObject& json) {
  json.check_class("FluxTransformer2DModel");
  json.integer_or("patch_size", 1, 1, 1);
  return read_flux_blocks_config(json);
}

FluxConfig read_flux_blocks_config(const JsonObject& json) {
  FluxConfig c;
  c.in_channels = json.integer_or("in_channels", c.in_channels, 1, kMaxWidth);
  c.out_channels = json.integer_or("out_channels", c.in_channels, 1, kMaxWidth);
  c.num_double = json.integer_or("num_layers", c.num_double, 0, kMaxBlocks);
  c.num_single = json.integer_or("num_single_layers", c.num_single, 0, kMaxBlocks);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, 1 << 14);
  c.head_width = json.integer_or("attention_head_dim", c.head_width, 2, 1 << 14);
  c.text_width = json.integer_or("joint_attention_dim", c.text_width, 1, kMaxWidth);
  c.pooled_width = json.integer_or("pooled_projection_dim", c.pooled_width, 1, kMaxWidth);
  c.guidance_embeds = json.flag_or("guidance_embeds", c.guidance_embeds);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxWidth);
  check_rope_widths(c.axes, 3, c.head_width, "axes_dims_rope", json.source());
  return c;
}

void adopt_blocks(FluxConfig& c, const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  const auto doubles = stored.num_blocks("double_blocks", "img_mod.lin.weight");
  const auto singles = stored.num_blocks("single_blocks", "modulation.lin.weight");
  if (doubles + singles == 0) return;  // another model, or coded in a way of its own
  c.num_double = doubles;
  c.num_single = singles;
  c.guidance_embeds = stored.has("guidance_in.in_layer.weight");
}

FluxConfig infer_flux_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  FluxConfig c;
  adopt_blocks(c, checkpoint);
  c.in_channels = stored.extent("img_in.weight", 1);
  c.out_channels = stored.extent("final_layer.linear.weight", 0);
  c.text_width = stored.extent("txt_in.weight", 1);
  c.pooled_width = stored.extent("vector_in.in_layer.weight", 1);
  c.head_width = stored.extent(c.num_double > 0 ? "double_blocks.0.img_attn.norm.query_norm.weight"
                                                : "single_blocks.0.norm.query_norm.weight",
                               0);
  c.num_heads = stored.num_heads(stored.extent("img_in.weight", 0), c.head_width);
  check_rope_widths(c.axes, 3, c.head_width, "axes_dims_rope", checkpoint.source());
  return c;
}

}  // namespace braid
