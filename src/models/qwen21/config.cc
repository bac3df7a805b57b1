#include "models/qwen21/config.h"

#include <numeric>

#include "base/error.h"
#include "models/qwen21/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxQwen21Width = 1 << 20, kMaxQwen21Blocks = 10'000,
                       kMaxQwen21Heads = 1 << 14;

void check_qwen21_axes(const Qwen21Config& c, const std::string& source) {
  require(c.axes.size() == 3, source, ": 'axes_dims_rope' should have 3 axes, it has ",
          c.axes.size());
  const auto sum = std::accumulate(c.axes.begin(), c.axes.end(), std::int64_t(0));
  require(sum == c.head_width(), source, ": 'axes_dims_rope' should sum to the width of a head, ",
          c.head_width(), ", it sums to ", sum);
  for (const auto axis : c.axes)
    require(axis % 2 == 0, source, ": 'axes_dims_rope' should hold even numbers, one is ", axis);
}

const StoredTensor* stored(const Checkpoint& checkpoint, const std::string& path) {
  return checkpoint.find(origins_of(qwen21_names(checkpoint), path).front().tensors.front());
}

std::int64_t stored_extent(const Checkpoint& checkpoint, const std::string& path, std::size_t dim) {
  const auto* const tensor = stored(checkpoint, path);
  require(tensor && tensor->entry.shape.size() > dim, checkpoint.source(),
          " is no Qwen-Image-2.1 transformer: it has no tensor '", path, "' of ", dim + 1, " dims");
  return tensor->entry.shape[dim];
}

}  // namespace

Qwen21Config read_qwen21_config(const JsonObject& json) {
  const auto class_name = json.class_name_or("QwenImage21Transformer2DModel");
  require(class_name == "QwenImage21Transformer2DModel", json.source(),
          " should describe a QwenImage21Transformer2DModel, it describes a ", class_name);
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
  c.causal_condition = json.flag_or("causal_condition", c.causal_condition);
  check_qwen21_axes(c, json.source());
  return c;
}

void adopt_blocks(Qwen21Config& c, const Checkpoint& checkpoint) {
  std::int64_t layers = 0;
  const auto has = [&](std::int64_t i) {
    return stored(checkpoint, "transformer_blocks." + std::to_string(i) + ".attn.norm_q.weight") !=
           nullptr;
  };
  while (layers < kMaxQwen21Blocks && has(layers)) ++layers;
  if (layers > 0) c.num_layers = layers;  // else another model
}

Qwen21Config infer_qwen21_config(const Checkpoint& checkpoint) {
  const auto extent = [&](const std::string& path, std::size_t dim) {
    return stored_extent(checkpoint, path, dim);
  };
  Qwen21Config c;
  adopt_blocks(c, checkpoint);
  c.hidden = extent("img_in.weight", 0);
  c.token_width = extent("img_in.weight", 1);
  c.text_width = extent("txt_in.text_norm.weight", 0);
  c.mlp_hidden = extent("transformer_blocks.0.img_mlp.out.weight", 1);
  const auto head = extent("transformer_blocks.0.attn.norm_q.weight", 0);
  require(head > 0 && c.hidden % head == 0, checkpoint.source(), ": heads of width ", head,
          " do not divide the width ", c.hidden);
  c.num_heads = c.hidden / head;
  check_qwen21_axes(c, checkpoint.source());
  return c;
}

}  // namespace braid
