#include "models/zimage/config.h"

#include "base/error.h"
#include "models/zimage/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000;

void check_heads(const ZImageConfig& c, const std::string& source) {
  require(c.hidden % c.num_heads == 0, source, ": 'n_heads', ", c.num_heads,
          ", should divide 'dim', ", c.hidden);
  check_rope_widths(c.axes, 3, c.head_width(), "axes_dims", source);
  require(c.axis_lengths.size() == 3, source, ": 'axes_lens' should have 3 axes, it has ",
          c.axis_lengths.size());
}

// The shortest text is one run, from position 1 on; the picture comes after it.
void check_tables(const ZImageConfig& c, const std::string& source) {
  require(c.axis_lengths[0] >= kZImageRun + 2, source, ": 'axes_lens' should be at least ",
          kZImageRun + 2, " for text, it is ", c.axis_lengths[0]);
}

void check_patches(const JsonObject& json) {
  const std::vector<std::int64_t> one = {1}, two = {2};
  require(json.integers_or("all_patch_size", two, 1, kMaxWidth) == two, json.source(),
          ": 'all_patch_size' should be [2]");
  require(json.integers_or("all_f_patch_size", one, 1, kMaxWidth) == one, json.source(),
          ": 'all_f_patch_size' should be [1]");
}

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, zimage_names(checkpoint), "Z-Image transformer"};
}

}  // namespace

ZImageConfig read_zimage_config(const JsonObject& json) {
  json.check_class("ZImageTransformer2DModel");
  check_patches(json);
  require(!json.has("siglip_feat_dim"), json.source(), ": 'siglip_feat_dim' should be null");
  ZImageConfig c;
  c.in_channels = json.integer_or("in_channels", c.in_channels, 1, kMaxWidth);
  c.hidden = json.integer_or("dim", c.hidden, 2, kMaxWidth);
  c.num_heads = json.integer_or("n_heads", c.num_heads, 1, 1 << 14);
  c.num_layers = json.integer_or("n_layers", c.num_layers, 0, kMaxBlocks);
  c.num_refiners = json.integer_or("n_refiner_layers", c.num_refiners, 0, kMaxBlocks);
  c.text_width = json.integer_or("cap_feat_dim", c.text_width, 1, kMaxWidth);
  c.axes = json.integers_or("axes_dims", c.axes, 0, kMaxWidth);
  c.axis_lengths = json.integers_or("axes_lens", c.axis_lengths, 1, kMaxWidth);
  c.theta = json.number_or("rope_theta", c.theta);
  c.time_scale = json.number_or("t_scale", c.time_scale);
  c.norm_eps = json.number_or("norm_eps", c.norm_eps);
  c.qk_norm = json.is_set("qk_norm");
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  require(c.norm_eps >= 0, json.source(), ": 'norm_eps' should not be below 0, it is ", c.norm_eps);
  check_heads(c, json.source());
  check_tables(c, json.source());
  return c;
}

void adopt_blocks(ZImageConfig& c, const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  const auto layers = stored.num_blocks("layers", "attention_norm1.weight");
  if (layers == 0) return;  // another model
  c.num_layers = layers;
  c.num_refiners = stored.num_blocks("noise_refiner", "attention_norm1.weight");
}

ZImageConfig infer_zimage_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  ZImageConfig c;
  adopt_blocks(c, checkpoint);
  c.in_channels = stored.extent("x_embedder.weight", 1) / 4;
  c.hidden = stored.extent("x_embedder.weight", 0);
  c.text_width = stored.extent("cap_embedder.norm.weight", 0);
  c.num_heads = stored.num_heads(c.hidden, stored.extent("layers.0.attention.q_norm.weight", 0));
  check_heads(c, checkpoint.source());
  return c;
}

}  // namespace braid
