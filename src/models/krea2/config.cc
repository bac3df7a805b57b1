#include "models/krea2/config.h"

#include <numeric>

#include "base/error.h"
#include "models/krea2/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20, kMaxBlocks = 10'000, kMaxHeads = 1 << 14;

void check_groups(const Krea2Widths& w, const char* heads, const char* kv_heads,
                  const std::string& source) {
  require(w.num_heads % w.num_kv_heads == 0, source, ": '", kv_heads, "', ", w.num_kv_heads,
          ", should divide '", heads, "', ", w.num_heads);
}

void check_axes(const Krea2Config& c, const std::string& source) {
  require(c.axes.size() == 3, source, ": 'axes_dims_rope' should have 3 axes, it has ",
          c.axes.size());
  const auto sum = std::accumulate(c.axes.begin(), c.axes.end(), std::int64_t(0));
  require(sum == c.image.head_width(), source,
          ": 'axes_dims_rope' should sum to the width of a head, ", c.image.head_width(),
          ", it sums to ", sum);
  for (const auto axis : c.axes)
    require(axis % 2 == 0, source, ": 'axes_dims_rope' should hold even numbers, one is ", axis);
}

Krea2Widths read_image_widths(const JsonObject& json, Krea2Widths w) {
  w.num_heads = json.integer_or("num_attention_heads", w.num_heads, 1, kMaxHeads);
  w.num_kv_heads = json.integer_or("num_key_value_heads", w.num_kv_heads, 1, kMaxHeads);
  w.hidden = w.num_heads * json.integer_or("attention_head_dim", 128, 2, kMaxWidth);
  w.mlp_hidden = json.integer_or("intermediate_size", w.mlp_hidden, 1, kMaxWidth);
  check_groups(w, "num_attention_heads", "num_key_value_heads", json.source());
  return w;
}

Krea2Widths read_text_widths(const JsonObject& json, Krea2Widths w) {
  w.num_heads = json.integer_or("text_num_attention_heads", w.num_heads, 1, kMaxHeads);
  w.num_kv_heads = json.integer_or("text_num_key_value_heads", w.num_kv_heads, 1, kMaxHeads);
  w.hidden = json.integer_or("text_hidden_dim", w.hidden, 1, kMaxWidth);
  w.mlp_hidden = json.integer_or("text_intermediate_size", w.mlp_hidden, 1, kMaxWidth);
  require(w.hidden % w.num_heads == 0, json.source(), ": 'text_num_attention_heads', ", w.num_heads,
          ", should divide 'text_hidden_dim', ", w.hidden);
  check_groups(w, "text_num_attention_heads", "text_num_key_value_heads", json.source());
  return w;
}

// The extents of stored tensors, by our paths.
class StoredExtents {
 public:
  explicit StoredExtents(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), names_(krea2_names(checkpoint)) {}

  std::int64_t of(const std::string& path, std::size_t dim) const {
    const auto* const tensor = stored(path).front();
    require(tensor && tensor->entry.shape.size() > dim, checkpoint_.source(),
            " is no Krea 2 transformer: it has no tensor '", path, "' of ", dim + 1, " dims");
    return tensor->entry.shape[dim];
  }
  // How many blocks the list has.
  std::int64_t count(const std::string& list) const {
    std::int64_t n = 0;
    while (n < kMaxBlocks && stored(list + "." + std::to_string(n) + ".norm1.weight").front()) ++n;
    return n;
  }
  // The sizes of a list's first block.
  Krea2Widths widths(const std::string& list) const {
    const auto block = list + ".0.";
    const auto hidden = of(block + "norm1.weight", 0);
    const auto head = of(block + "attn.norm_q.weight", 0);
    require(head > 0 && hidden % head == 0, checkpoint_.source(), ": heads of width ", head,
            " do not divide the width ", hidden, " of '", list, "'");
    return {.hidden = hidden,
            .num_heads = hidden / head,
            .num_kv_heads = of(block + "attn.kv.weight", 0) / head,
            .mlp_hidden = of(block + "mlp.gate_up.weight", 0)};
  }

 private:
  // What the tensor is joined from.
  std::vector<const StoredTensor*> stored(const std::string& path) const {
    std::vector<const StoredTensor*> found;
    const auto origin = origins_of(names_, path).front();
    for (const auto& name : origin.tensors) found.push_back(checkpoint_.find(name));
    return found;
  }

  const Checkpoint& checkpoint_;
  Names names_;
};

}  // namespace

Krea2Config read_krea2_config(const JsonObject& json) {
  const auto class_name = json.class_name_or("Krea2Transformer2DModel");
  require(class_name == "Krea2Transformer2DModel", json.source(),
          " should describe a Krea2Transformer2DModel, it describes a ", class_name);
  Krea2Config c;
  c.token_width = json.integer_or("in_channels", c.token_width, 1, kMaxWidth);
  c.image = read_image_widths(json, c.image);
  c.num_layers = json.integer_or("num_layers", c.num_layers, 0, kMaxBlocks);
  c.sinusoid = json.integer_or("timestep_embed_dim", c.sinusoid, 2, kMaxWidth);
  require(c.sinusoid % 2 == 0, json.source(), ": 'timestep_embed_dim' should be even, it is ",
          c.sinusoid);
  c.text = read_text_widths(json, c.text);
  c.num_taps = json.integer_or("num_text_layers", c.num_taps, 1, 1000);
  c.num_tap_blocks = json.integer_or("num_layerwise_text_blocks", c.num_tap_blocks, 0, kMaxBlocks);
  c.num_text_blocks = json.integer_or("num_refiner_text_blocks", c.num_text_blocks, 0, kMaxBlocks);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxWidth);
  c.theta = json.number_or("rope_theta", c.theta);
  c.norm_eps = json.number_or("norm_eps", c.norm_eps);
  require(c.theta > 0, json.source(), ": 'rope_theta' should be above 0, it is ", c.theta);
  require(c.norm_eps >= 0, json.source(), ": 'norm_eps' should not be below 0, it is ", c.norm_eps);
  check_axes(c, json.source());
  return c;
}

void adopt_blocks(Krea2Config& c, const Checkpoint& checkpoint) {
  const StoredExtents stored(checkpoint);
  const auto layers = stored.count("transformer_blocks");
  if (layers == 0) return;  // another model
  c.num_layers = layers;
  c.num_tap_blocks = stored.count("text_fusion.0.layerwise_blocks");
  c.num_text_blocks = stored.count("text_fusion.0.refiner_blocks");
}

Krea2Config infer_krea2_config(const Checkpoint& checkpoint) {
  const StoredExtents stored(checkpoint);
  Krea2Config c;
  adopt_blocks(c, checkpoint);
  c.token_width = stored.of("img_in.weight", 1);
  c.sinusoid = stored.of("time_embed.linear_1.weight", 1);
  c.image = stored.widths("transformer_blocks");
  c.num_taps = stored.of("text_fusion.0.projector.weight", 1);
  const bool has_text_blocks = c.num_tap_blocks + c.num_text_blocks > 0;
  if (has_text_blocks)
    c.text = stored.widths(c.num_tap_blocks > 0 ? "text_fusion.0.layerwise_blocks"
                                                : "text_fusion.0.refiner_blocks");
  check_groups(c.image, "heads of queries", "heads of keys", checkpoint.source());
  check_axes(c, checkpoint.source());
  return c;
}

}  // namespace braid
