#include "models/flux3/config.h"

#include "base/error.h"
#include "models/flux3/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMostWidth = 1 << 20, kMostBlocks = 10'000, kMostHeads = 1 << 14;

std::int64_t read_mlp_hidden(const JsonObject& json, std::int64_t width) {
  const auto ratio = json.number_or("mlp_ratio", 3);
  const auto hidden = std::int64_t(double(width) * ratio);
  require(hidden >= 1 && ratio <= 64, json.source(), ": 'mlp_ratio' should be between 1/", width,
          " and 64, it is ", ratio);
  return hidden;
}

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, flux3_names(checkpoint), "FLUX.3 transformer"};
}

}  // namespace

Flux3Config read_flux3_config(const JsonObject& json) {
  json.check_class("Flux3Transformer2DModel");
  Flux3Config c;
  c.token_width = json.integer_or("in_channels", c.token_width, 1, kMostWidth);
  c.reference_width = json.integer_or("cond_in_channels", c.reference_width, 1, kMostWidth);
  c.num_mode = json.integer_or("num_layers", c.num_mode, 0, kMostBlocks);
  c.num_single = json.integer_or("num_single_layers", c.num_single, 0, kMostBlocks);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, kMostHeads);
  c.head_width = json.integer_or("attention_head_dim", c.head_width, 2, kMostHeads);
  c.mlp_hidden = read_mlp_hidden(json, c.hidden());
  c.text_width = json.integer_or("joint_attention_dim", c.text_width, 1, kMostWidth);
  c.sinusoid = json.integer_or("timestep_channels", c.sinusoid, 2, kMostWidth);
  require(c.sinusoid % 2 == 0, json.source(), ": 'timestep_channels' should be even, it is ",
          c.sinusoid);
  c.flow_map = json.flag_or("flow_map", c.flow_map);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMostWidth);
  c.theta = json.number_or("rope_theta", c.theta);
  c.norm_eps = json.number_or("eps", c.norm_eps);
  require(c.norm_eps >= 0, json.source(), ": 'eps' should not be below 0, it is ", c.norm_eps);
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  check_rope_widths(c.axes, 4, c.head_width, "axes_dims_rope", json.source());
  return c;
}

void adopt_blocks(Flux3Config& c, const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  const auto modes = stored.num_blocks("txt_mode_blocks", "mlp_out.weight");
  const auto singles = stored.num_blocks("single_blocks", "mlp_out.weight");
  if (modes + singles == 0) return;  // another model, or coded in a way of its own
  c.num_mode = modes;
  c.num_single = singles;
  c.flow_map = stored.has("ref_time_in.in_layer.weight");
}

Flux3Config infer_flux3_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  Flux3Config c;
  adopt_blocks(c, checkpoint);
  const std::string block = c.num_single > 0 ? "single_blocks.0." : "txt_mode_blocks.0.";
  const auto hidden = stored.extent("emb_in.image.weight", 0);
  c.token_width = stored.extent("emb_in.image.weight", 1);
  c.reference_width = stored.extent("emb_in.image_cond.weight", 1);
  c.text_width = stored.extent("txt_in.weight", 1);
  c.sinusoid = stored.extent("time_in.in_layer.weight", 1);
  c.head_width = stored.extent(block + "norm.query_norm.weight", 0);
  c.mlp_hidden = stored.extent(block + "mlp_out.weight", 1);
  c.num_heads = stored.num_heads(hidden, c.head_width);
  check_rope_widths(c.axes, 4, c.head_width, "axes_dims_rope", checkpoint.source());
  return c;
}

}  // namespace braid
