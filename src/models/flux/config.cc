#include "models/flux/config.h"

#include <numeric>

#include "base/error.h"
#include "models/flux/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000;

void check_axes(const FluxConfig& c, const std::string& source) {
  const auto sum = std::accumulate(c.axes.begin(), c.axes.end(), std::int64_t(0));
  require(sum == c.head_width, source, ": 'axes_dims_rope' should sum to attention_head_dim, ",
          c.head_width, ", it sums to ", sum);
  for (const auto axis : c.axes)
    require(axis % 2 == 0, source, ": 'axes_dims_rope' should hold even numbers, one is ", axis);
  require(c.axes.size() == 3, source, ": 'axes_dims_rope' should have 3 axes, it has ",
          c.axes.size());
}

}  // namespace

FluxConfig read_flux_config(const JsonObject& json) {
  const auto class_name = json.class_name_or("FluxTransformer2DModel");
  require(class_name == "FluxTransformer2DModel", json.source(),
          " should describe a FluxTransformer2DModel, it describes a ", class_name);
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
  check_axes(c, json.source());
  return c;
}

void adopt_blocks(FluxConfig& c, const Checkpoint& checkpoint) {
  const auto names = flux_names(checkpoint);
  const auto has = [&](const std::string& path) {
    return checkpoint.find(origins_of(names, path).front().tensors.front()) != nullptr;
  };
  const auto count = [&](const std::string& before, const std::string& after) {
    std::int64_t n = 0;
    while (n < kMaxBlocks && has(before + std::to_string(n) + after)) ++n;
    return n;
  };
  const auto doubles = count("double_blocks.", ".img_mod.lin.weight");
  const auto singles = count("single_blocks.", ".modulation.lin.weight");
  if (doubles + singles == 0) return;  // another model, or coded in a way of its own
  c.num_double = doubles;
  c.num_single = singles;
  c.guidance_embeds = has("guidance_in.in_layer.weight");
}

FluxConfig infer_flux_config(const Checkpoint& checkpoint) {
  const auto names = flux_names(checkpoint);
  const auto extent = [&](const char* path, std::size_t dim) {
    const auto name = origins_of(names, path).front().tensors.front();
    const auto* const stored = checkpoint.find(name);
    require(stored && stored->entry.shape.size() > dim, checkpoint.source(),
            " is no FLUX transformer: it has no tensor '", name, "' of ", dim + 1, " dims");
    return stored->entry.shape[dim];
  };
  FluxConfig c;
  adopt_blocks(c, checkpoint);
  c.in_channels = extent("img_in.weight", 1);
  c.out_channels = extent("final_layer.linear.weight", 0);
  c.text_width = extent("txt_in.weight", 1);
  c.pooled_width = extent("vector_in.in_layer.weight", 1);
  c.head_width = c.num_double > 0 ? extent("double_blocks.0.img_attn.norm.query_norm.weight", 0)
                                  : extent("single_blocks.0.norm.query_norm.weight", 0);
  require(c.head_width > 0 && extent("img_in.weight", 0) % c.head_width == 0, checkpoint.source(),
          ": heads of width ", c.head_width, " do not divide the hidden width ",
          extent("img_in.weight", 0));
  c.num_heads = extent("img_in.weight", 0) / c.head_width;
  check_axes(c, checkpoint.source());
  return c;
}

}  // namespace braid
