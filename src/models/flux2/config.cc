#include "models/flux2/config.h"

#include <numeric>

#include "base/error.h"
#include "models/flux2/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000;

void check_axes(const Flux2Config& c, const std::string& source) {
  const auto sum = std::accumulate(c.axes.begin(), c.axes.end(), std::int64_t(0));
  require(sum == c.head_width, source, ": 'axes_dims_rope' should sum to attention_head_dim, ",
          c.head_width, ", it sums to ", sum);
  for (const auto axis : c.axes)
    require(axis % 2 == 0, source, ": 'axes_dims_rope' should hold even numbers, one is ", axis);
  require(c.axes.size() == 4, source, ": 'axes_dims_rope' should have 4 axes, it has ",
          c.axes.size());
}

std::int64_t read_mlp_hidden(const JsonObject& json, const Flux2Config& c) {
  const auto ratio = json.number_or("mlp_ratio", 3);
  const auto hidden = std::int64_t(double(c.hidden()) * ratio);
  require(hidden >= 1 && ratio <= 64, json.source(), ": 'mlp_ratio' should be between 1/",
          c.hidden(), " and 64, it is ", ratio);
  return hidden;
}

}  // namespace

Flux2Config read_flux2_config(const JsonObject& json) {
  const auto class_name = json.class_name_or("Flux2Transformer2DModel");
  require(class_name == "Flux2Transformer2DModel", json.source(),
          " should describe a Flux2Transformer2DModel, it describes a ", class_name);
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
  c.guidance_embeds = json.flag_or("guidance_embeds", c.guidance_embeds);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxWidth);
  c.theta = json.number_or("rope_theta", c.theta);
  const auto eps = json.number_or("eps", 1e-6);
  require(eps == 1e-6, json.source(), ": 'eps' should be 1e-06, it is ", eps);
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  check_axes(c, json.source());
  return c;
}

void adopt_blocks(Flux2Config& c, const Checkpoint& checkpoint) {
  const auto names = flux2_names(checkpoint);
  const auto has = [&](const std::string& path) {
    return checkpoint.find(origins_of(names, path).front().tensors.front()) != nullptr;
  };
  const auto count = [&](const std::string& before, const std::string& after) {
    std::int64_t n = 0;
    while (n < kMaxBlocks && has(before + std::to_string(n) + after)) ++n;
    return n;
  };
  const auto doubles = count("double_blocks.", ".img_mlp.2.weight");
  const auto singles = count("single_blocks.", ".linear2.weight");
  if (doubles + singles == 0) return;  // another model, or coded in a way of its own
  c.num_double = doubles;
  c.num_single = singles;
  c.guidance_embeds = has("guidance_in.in_layer.weight");
}

Flux2Config infer_flux2_config(const Checkpoint& checkpoint) {
  const auto names = flux2_names(checkpoint);
  const auto stored = [&](const std::string& path) {
    return checkpoint.find(origins_of(names, path).front().tensors.front());
  };
  const auto extent = [&](const std::string& path, std::size_t dim) {
    const auto* const tensor = stored(path);
    require(tensor && tensor->entry.shape.size() > dim, checkpoint.source(),
            " is no FLUX.2 transformer: it has no tensor '", path, "' of ", dim + 1, " dims");
    return tensor->entry.shape[dim];
  };
  Flux2Config c;
  adopt_blocks(c, checkpoint);
  const auto hidden = extent("img_in.weight", 0);
  c.in_channels = extent("img_in.weight", 1);
  c.out_channels = extent("final_layer.linear.weight", 0);
  c.text_width = extent("txt_in.weight", 1);
  c.sinusoid = extent("time_in.in_layer.weight", 1);
  c.head_width = c.num_double > 0 ? extent("double_blocks.0.img_attn.norm.query_norm.weight", 0)
                                  : extent("single_blocks.0.norm.query_norm.weight", 0);
  c.mlp_hidden = c.num_double > 0 ? extent("double_blocks.0.img_mlp.2.weight", 1)
                                  : extent("single_blocks.0.linear2.weight", 1) - hidden;
  require(c.head_width > 0 && hidden % c.head_width == 0, checkpoint.source(), ": heads of width ",
          c.head_width, " do not divide the hidden width ", hidden);
  c.num_heads = hidden / c.head_width;
  check_axes(c, checkpoint.source());
  return c;
}

}  // namespace braid
