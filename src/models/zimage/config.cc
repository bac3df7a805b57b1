#include "models/zimage/config.h"

#include <numeric>

#include "base/error.h"
#include "models/zimage/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000;

void check_heads(const ZImageConfig& c, const std::string& source) {
  require(c.hidden % c.num_heads == 0, source, ": 'n_heads', ", c.num_heads,
          ", should divide 'dim', ", c.hidden);
  const auto sum = std::accumulate(c.axes.begin(), c.axes.end(), std::int64_t(0));
  require(sum == c.head_width(), source, ": 'axes_dims' should sum to the width of a head, ",
          c.head_width(), ", it sums to ", sum);
  for (const auto axis : c.axes)
    require(axis % 2 == 0, source, ": 'axes_dims' should hold even numbers, one is ", axis);
  require(c.axes.size() == 3 && c.axis_lengths.size() == 3, source,
          ": 'axes_dims' and 'axes_lens' should have 3 axes, they have ", c.axes.size(), " and ",
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

}  // namespace

ZImageConfig read_zimage_config(const JsonObject& json) {
  const auto class_name = json.class_name_or("ZImageTransformer2DModel");
  require(class_name == "ZImageTransformer2DModel", json.source(),
          " should describe a ZImageTransformer2DModel, it describes a ", class_name);
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
  c.qk_norm = json.flag_or("qk_norm", c.qk_norm);
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  require(c.norm_eps >= 0, json.source(), ": 'norm_eps' should not be below 0, it is ", c.norm_eps);
  check_heads(c, json.source());
  check_tables(c, json.source());
  return c;
}

void adopt_blocks(ZImageConfig& c, const Checkpoint& checkpoint) {
  const auto names = zimage_names(checkpoint);
  const auto count = [&](const std::string& list) {
    const auto has = [&](std::int64_t block) {
      const auto path = list + "." + std::to_string(block) + ".attention_norm1.weight";
      return checkpoint.find(origins_of(names, path).front().tensors.front()) != nullptr;
    };
    std::int64_t n = 0;
    while (n < kMaxBlocks && has(n)) ++n;
    return n;
  };
  const auto layers = count("layers");
  if (layers == 0) return;  // another model
  c.num_layers = layers;
  c.num_refiners = count("noise_refiner");
}

ZImageConfig infer_zimage_config(const Checkpoint& checkpoint) {
  const auto names = zimage_names(checkpoint);
  const auto stored = [&](const std::string& path) {
    return checkpoint.find(origins_of(names, path).front().tensors.front());
  };
  const auto extent = [&](const std::string& path, std::size_t dim) {
    const auto* const tensor = stored(path);
    require(tensor && tensor->entry.shape.size() > dim, checkpoint.source(),
            " is no Z-Image transformer: it has no tensor '", path, "' of ", dim + 1, " dims");
    return tensor->entry.shape[dim];
  };
  ZImageConfig c;
  adopt_blocks(c, checkpoint);
  c.in_channels = extent("x_embedder.weight", 1) / 4;
  c.hidden = extent("x_embedder.weight", 0);
  c.text_width = extent("cap_embedder.norm.weight", 0);
  const auto head_width = extent("layers.0.attention.q_norm.weight", 0);
  require(head_width > 0 && c.hidden >= head_width, checkpoint.source(), ": heads of width ",
          head_width, " do not divide the hidden width ", c.hidden);
  c.num_heads = c.hidden / head_width;
  check_heads(c, checkpoint.source());
  return c;
}

}  // namespace braid
