#include "models/clip/model.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

// Configs of FLUX.1 carry this wrong id from before transformers' change #24773; models with it are
// pooled at the largest id of the prompt.
constexpr std::int64_t kLegacyEos = 2;

ClipActivation activation_named(const std::string& name, const std::string& source) {
  if (name == "quick_gelu") return ClipActivation::kQuickGelu;
  if (name == "gelu") return ClipActivation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return ClipActivation::kGeluTanh;
  throw InputError(
      text_of(source, ": 'hidden_act' should be quick_gelu, gelu or gelu_new, it is ", name));
}

Tensor activate(const Tensor& x, ClipActivation activation) {
  switch (activation) {
    case ClipActivation::kQuickGelu:
      return x * at::sigmoid(1.702 * x);
    case ClipActivation::kGelu:
      return at::gelu(x);
    case ClipActivation::kGeluTanh:
      return at::gelu(x, "tanh");
  }
  return x;
}

const std::vector<Spelling> kSpellings = {
    {"encoder.layers.*.self_attn.qkv",
     {"encoder.layers.*.self_attn.q_proj", "encoder.layers.*.self_attn.k_proj",
      "encoder.layers.*.self_attn.v_proj"}}};

}  // namespace

ClipConfig read_clip_config(const JsonObject& json) {
  ClipConfig c;
  c.vocab_size = json.integer_or("vocab_size", 49408, 1, 1 << 24);
  c.max_positions = json.integer_or("max_position_embeddings", 77, 1, 1 << 20);
  c.hidden = json.integer_or("hidden_size", 512, 1, 1 << 20);
  c.mlp_hidden = json.integer_or("intermediate_size", 2048, 1, 1 << 20);
  c.num_layers = json.integer_or("num_hidden_layers", 12, 0, 10'000);
  c.num_heads = json.integer_or("num_attention_heads", 8, 1, 1 << 14);
  c.eps = json.number_or("layer_norm_eps", c.eps);
  c.eos_token = json.integer_or("eos_token_id", c.eos_token, 0, 1 << 24);
  c.activation = activation_named(json.string_or("hidden_act", "quick_gelu"), json.source());
  require(c.hidden % c.num_heads == 0, json.source(), ": 'num_attention_heads', ", c.num_heads,
          ", should divide 'hidden_size', ", c.hidden);
  return c;
}

ClipLayer::ClipLayer(const Weights& w, const ClipConfig& c)
    : norm1_(w / "layer_norm1", c.hidden, c.eps),
      norm2_(w / "layer_norm2", c.hidden, c.eps),
      qkv_(w / "self_attn" / "qkv", {.in = c.hidden, .out = 3 * c.hidden}),
      proj_(w / "self_attn" / "out_proj", {.in = c.hidden, .out = c.hidden}),
      mlp_in_(w / "mlp" / "fc1", {.in = c.hidden, .out = c.mlp_hidden}),
      mlp_out_(w / "mlp" / "fc2", {.in = c.mlp_hidden, .out = c.hidden}),
      head_width_(c.hidden / c.num_heads),
      activation_(c.activation) {}

Tensor ClipLayer::attend(const Tensor& x_BLC) const {
  const auto causal = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/q.size(2) > 1);
  };
  const auto parts = qkv_(x_BLC).chunk(3, -1);
  return attend_tokens(causal, split_heads(parts[0], head_width_),
                       split_heads(parts[1], head_width_), split_heads(parts[2], head_width_));
}

Tensor ClipLayer::operator()(const Tensor& x_BLC) const {
  const auto h = x_BLC + proj_(attend(norm1_(x_BLC)));
  return h + mlp_out_(activate(mlp_in_(norm2_(h)), activation_));
}

Clip::Clip(const ClipConfig& c, const Weights& w)
    : config_(c),
      token_embedding_(w / "embeddings" / "token_embedding", c.vocab_size, c.hidden),
      position_embedding_(
          (w / "embeddings" / "position_embedding").tensor("weight", {c.max_positions, c.hidden})),
      layers_(w / "encoder" / "layers", c.num_layers, c),
      final_norm_(w / "final_layer_norm", c.hidden, c.eps) {
  w.finish();
}

Clip::Output Clip::operator()(const Tensor& ids_BL) const {
  const auto length = ids_BL.size(1);
  require(length <= config_.max_positions, "the CLIP tokenizer makes ", length,
          " tokens, the encoder has positions for ", config_.max_positions);
  require(ids_BL.max().item<std::int64_t>() < config_.vocab_size, "the CLIP tokenizer makes token ",
          ids_BL.max().item<std::int64_t>(), ", the encoder knows ", config_.vocab_size);
  auto x = token_embedding_(ids_BL) + position_embedding_.narrow(0, 0, length);
  layers_.for_each([&](std::int64_t, const ClipLayer& layer) { x = layer(x); });
  x = final_norm_(x);
  const auto position_B = config_.eos_token == kLegacyEos
                              ? ids_BL.argmax(-1)
                              : ids_BL.eq(config_.eos_token).to(at::kInt).argmax(-1);
  const auto rows_B = at::arange(ids_BL.size(0), ids_BL.options());
  return {.hidden_BLC = x, .pooled_BC = x.index({rows_B, position_B})};
}

ShardingTable clip_sharding(const ClipConfig& c, int size) {
  require(c.num_heads % size == 0, "tensor parallelism over ", size, " devices cannot share the ",
          c.num_heads, " heads of the CLIP encoder evenly");
  return {
      {"encoder.layers.*.self_attn.qkv", column_parallel({c.hidden, c.hidden, c.hidden})},
      {"encoder.layers.*.self_attn.out_proj", row_parallel()},
      {"encoder.layers.*.mlp.fc1", column_parallel()},
      {"encoder.layers.*.mlp.fc2", row_parallel()},
  };
}

Names clip_names(const Checkpoint& checkpoint) {
  const std::string prefix = "text_model.";
  const bool has_prefix = checkpoint.find(prefix + "embeddings.token_embedding.weight") != nullptr;
  return {.spellings = kSpellings,
          .prefix = has_prefix ? prefix : "",
          // a buffer that older versions saved, and what models with a projection add
          .ignored = {"text_model.embeddings.position_ids", "embeddings.position_ids",
                      "text_projection.weight"}};
}

// diffusers', sd-scripts' and ComfyUI's.
AdapterNames clip_adapter_names() {
  AdapterNames names{.tables = {{kSpellings}}};
  for (const std::string prefix :
       {"text_encoder.", "lora_te_", "lora_te1_", "text_encoders.clip_l.transformer."})
    names.prefixes.insert(names.prefixes.end(), {prefix, prefix + "text_model."});
  return names;
}

}  // namespace braid
