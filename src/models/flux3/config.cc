#include "models/flux3/config.h"

#include <numeric>

#include "base/error.h"
#include "models/flux3/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMostWidth = 1 << 20, kMostBlocks = 10'000, kMostHeads = 1 << 14;

void check_axes(const Flux3Config& c, const std::string& source) {
  require(c.axes.size() == 4, source, ": 'axes_dims_rope' should have 4 axes, it has ",
          c.axes.size());
  const auto sum = std::accumulate(c.axes.begin(), c.axes.end(), std::int64_t(0));
  require(sum == c.head_width, source, ": 'axes_dims_rope' should sum to attention_head_dim, ",
          c.head_width, ", it sums to ", sum);
  for (const auto axis : c.axes)
    require(axis % 2 == 0, source, ": 'axes_dims_rope' should hold even numbers, one is ", axis);
}

std::int64_t read_mlp_hidden(const JsonObject& json, std::int64_t width) {
  const auto ratio = json.number_or("mlp_ratio", 3);
  const auto hidden = std::int64_t(double(width) * ratio);
  require(hidden >= 1 && ratio <= 64, json.source(), ": 'mlp_ratio' should be between 1/", width,
          " and 64, it is ", ratio);
  return hidden;
}

// The first of the stored tensors that one of ours is joined from, by our paths.
class StoredParts {
 public:
  explicit StoredParts(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), names_(flux3_names(checkpoint)) {}

  const StoredTensor* find(const std::string& path) const {
    return checkpoint_.find(origins_of(names_, path).front().tensors.front());
  }
  std::int64_t extent(const std::string& path, std::size_t dim) const {
    const auto* const tensor = find(path);
    require(tensor && tensor->entry.shape.size() > dim, checkpoint_.source(),
            " is no FLUX.3 transformer: it has no tensor '", path, "' of ", dim + 1, " dims");
    return tensor->entry.shape[dim];
  }
  std::int64_t count(const std::string& list) const {
    std::int64_t n = 0;
    while (n < kMostBlocks && find(list + "." + std::to_string(n) + ".mlp_out.weight")) ++n;
    return n;
  }

 private:
  const Checkpoint& checkpoint_;
  Names names_;
};

}  // namespace

Flux3Config read_flux3_config(const JsonObject& json) {
  const auto class_name = json.class_name_or("Flux3Transformer2DModel");
  require(class_name == "Flux3Transformer2DModel", json.source(),
          " should describe a Flux3Transformer2DModel, it describes a ", class_name);
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
  check_axes(c, json.source());
  return c;
}

void adopt_blocks(Flux3Config& c, const Checkpoint& checkpoint) {
  const StoredParts stored(checkpoint);
  const auto modes = stored.count("txt_mode_blocks"), singles = stored.count("single_blocks");
  if (modes + singles == 0) return;  // another model, or coded in a way of its own
  c.num_mode = modes;
  c.num_single = singles;
  c.flow_map = stored.find("ref_time_in.in_layer.weight") != nullptr;
}

Flux3Config infer_flux3_config(const Checkpoint& checkpoint) {
  const StoredParts stored(checkpoint);
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
  require(c.head_width > 0 && hidden % c.head_width == 0, checkpoint.source(), ": heads of width ",
          c.head_width, " do not divide the hidden width ", hidden);
  c.num_heads = hidden / c.head_width;
  check_axes(c, checkpoint.source());
  return c;
}

}  // namespace braid
