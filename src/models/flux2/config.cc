#include "models/flux2/config.h"

#include "base/error.h"
#include "models/flux2/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000;

std::int64_t read_mlp_hidden(const JsonObject& json, const Flux2Config& c) {
  const auto ratio = json.number_or("mlp_ratio", 3);
  const auto hidden = std::int64_t(double(c.hidden()) * ratio);
  require(hidden >= 1 && ratio <= 64, json.source(), ": 'mlp_ratio' should be between 1/",
          c.hidden(), " and 64, it is ", ratio);
  return hidden;
}

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, flux2_names(checkpoint), "FLUX.2 transformer"};
}

}  // namespace

Flux2Config read_flux2_config(const JsonObject& json) {
  json.check_class("Flux2Transformer2DModel");
  Flux2Config c;
  json.integer_or("patch_size", 1, 1, 1);
  c.in_channels = json.integer_or("in_channels", c.in_channels, 1, kMaxWidth);
  c.out_channels = json.integer_or("out_channels", c.in_channels, 1, kMaxWidth);
  c.num_double = json.integer_or("num_layers", c.num_double, 0, kMaxBlocks);
  c.num_single = json.integer_or("num_single_layers", c.num_single, 0, kMaxBlocks);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, 1 << 14);
  c.head_width = json.integer_or("attention_head_dim", c.head_width, 2, 1 << 14);
  c.mlp_hidden = read_mlp_hidden(json, c);
  c.text_width = json.integer_or("joint_attention_dim", c.text_width, 1, kMaxWidth);
  c.sinusoid = json.integer_or("timestep_guidance_channels", c.sinusoid, 2, kMaxWidth);
  require(c.sinusoid % 2 == 0, json.source(),
          ": 'timestep_guidance_channels' should be even, it is ", c.sinusoid);
  c.guidance_embeds = json.is_set("guidance_embeds");
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxWidth);
  c.theta = json.number_or("rope_theta", c.theta);
  const auto eps = json.number_or("eps", 1e-6);
  require(eps == 1e-6, json.source(), ": 'eps' should be 1e-06, it is ", eps);
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  check_rope_widths(c.axes, 4, c.head_width, "axes_dims_rope", json.source());
  return c;
}

void adopt_blocks(Flux2Config& c, const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  const auto doubles = stored.num_blocks("double_blocks", "img_mlp.2.weight");
  const auto singles = stored.num_blocks("single_blocks", "linear2.weight");
  if (doubles + singles == 0) return;  // another model, or coded in a way of its own
  c.num_double = doubles;
  c.num_single = singles;
  c.guidance_embeds = stored.has("guidance_in.in_layer.weight");
}

Flux2Config infer_flux2_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  Flux2Config c;
  adopt_blocks(c, checkpoint);
  const auto hidden = stored.extent("img_in.weight", 0);
  c.in_channels = stored.extent("img_in.weight", 1);
  c.out_channels = stored.extent("final_layer.linear.weight", 0);
  c.text_width = stored.extent("txt_in.weight", 1);
  c.sinusoid = stored.extent("time_in.in_layer.weight", 1);
  c.head_width = c.num_double > 0
                     ? stored.extent("double_blocks.0.img_attn.norm.query_norm.weight", 0)
                     : stored.extent("single_blocks.0.norm.query_norm.weight", 0);
  c.mlp_hidden = c.num_double > 0 ? stored.extent("double_blocks.0.img_mlp.2.weight", 1)
                                  : stored.extent("single_blocks.0.linear2.weight", 1) - hidden;
  c.num_heads = stored.num_heads(hidden, c.head_width);
  check_rope_widths(c.axes, 4, c.head_width, "axes_dims_rope", checkpoint.source());
  return c;
}

}  // namespace braid
