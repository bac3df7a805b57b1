#include "models/clip/model.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid {
namespace {

// FLUX.1's configs carry this wrong id, from before transformers' change #24773. Models with it are
// pooled at the prompt's largest id.
constexpr std::int64_t kLegacyEos = 2;

Activation activation_named(const std::string& name, const std::string& source) {
  if (name == "quick_gelu") return Activation::kQuickGelu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  throw InputError(
      text_of(source, ": 'hidden_act' should be quick_gelu, gelu or gelu_new, it is ", name));
}

// Where transformers' CLIPTextModel looks in the config of a whole CLIP model: at `text_config`; if
// there is none, at an object that names its type. It does not know `text_config_dict`, in which
// older files repeat some of the fields.
JsonObject text_config_in(const JsonObject& json) {
  const std::string inner = "text_config", type = "clip_text_model";
  const auto object_at = [&](const std::string& key) {
    return JsonObject(json.at(key), text_of(json.source(), ": '", key, "'"));
  };
  if (json.has(inner)) return object_at(inner);
  if (json.string_or("model_type", type) == type) return json;
  for (const auto& [key, value] : json.json().items())
    if (value.is_object() && value.value("model_type", Json()) == type) return object_at(key);
  return json;
}

Tensor attend_causally(const Tensor& q, const Tensor& k, const Tensor& v) {
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/q.size(2) > 1);
}

}  // namespace

ClipConfig read_clip_config(const JsonObject& whole) {
  const auto json = text_config_in(whole);
  ClipConfig c;
  c.vocab_size = json.integer_or("vocab_size", 49408, 1, 1 << 24);
  c.max_positions = json.integer_or("max_position_embeddings", 77, 1, 1 << 20);
  c.hidden = json.integer_or("hidden_size", 512, 1, 1 << 20);
  c.mlp_hidden = json.integer_or("intermediate_size", 2048, 1, 1 << 20);
  c.num_layers = json.integer_or("num_hidden_layers", 12, 0, 10'000);
  c.num_heads = json.integer_or("num_attention_heads", 8, 1, 1 << 14);
  c.eps = json.number_or("layer_norm_eps", c.eps);
  require(c.eps >= 0, json.source(), ": 'layer_norm_eps' should not be below 0, it is ", c.eps);
  c.eos_token = json.integer_or("eos_token_id", c.eos_token, 0, 1 << 24);
  c.activation = activation_named(json.string_or("hidden_act", "quick_gelu"), json.source());
  require(c.hidden % c.num_heads == 0, json.source(), ": 'num_attention_heads', ", c.num_heads,
          ", should divide 'hidden_size', ", c.hidden);
  return c;
}

Clip::Clip(const ClipConfig& c, const Weights& w)
    : config_(c),
      token_embedding_(w / "embeddings" / "token_embedding", c.vocab_size, c.hidden),
      position_embedding_(
          (w / "embeddings" / "position_embedding").tensor("weight", {c.max_positions, c.hidden})),
      layers_(w / "encoder" / "layers", c.num_layers,
              EncoderLayerShape{.hidden = c.hidden,
                                .mlp_hidden = c.mlp_hidden,
                                .num_heads = c.num_heads,
                                .eps = c.eps,
                                .activation = c.activation}),
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
  layers_.for_each([&](std::int64_t, const EncoderLayer& layer) { x = layer(x, attend_causally); });
  x = final_norm_(x);
  const auto position_B = config_.eos_token == kLegacyEos
                              ? ids_BL.argmax(-1)
                              : ids_BL.eq(config_.eos_token).to(at::kInt).argmax(-1);
  const auto rows_B = at::arange(ids_BL.size(0), ids_BL.options());
  return {.hidden_BLC = x, .pooled_BC = x.index({rows_B, position_B})};
}

ShardingTable clip_sharding(const ClipConfig& c) {
  const Pieces heads{c.num_heads}, channels = pieces_of_mlp(c.mlp_hidden, c.num_heads);
  return {
      {"encoder.layers.*.self_attn.qkv", column_parallel(heads, {c.hidden, c.hidden, c.hidden})},
      {"encoder.layers.*.self_attn.out_proj", row_parallel(heads)},
      {"encoder.layers.*.mlp.fc1", column_parallel(channels)},
      {"encoder.layers.*.mlp.fc2", row_parallel(channels)},
  };
}

Names clip_names(const Checkpoint& checkpoint) {
  const std::string prefix = "text_model.";
  const bool has_prefix = checkpoint.find(prefix + "embeddings.token_embedding.weight") != nullptr;
  return {.spellings = encoder_layer_spellings(),
          .prefix = has_prefix ? prefix : "",
          // a buffer saved by older versions, and what only whole CLIP models use
          .ignored = {"text_model.embeddings.position_ids", "embeddings.position_ids",
                      "text_projection.weight", "logit_scale", "visual_projection.weight",
                      "vision_model.**"}};
}

// Covers diffusers', sd-scripts', OneTrainer's and ComfyUI's names.
AdapterNames clip_adapter_names() {
  AdapterNames names{.tables = {{encoder_layer_spellings()}}};
  for (const std::string prefix :
       {"text_encoder.", "lora_te_", "lora_te1_", "text_encoders.clip_l.transformer.", "clip_l."})
    names.prefixes.insert(names.prefixes.end(), {prefix, prefix + "text_model."});
  return names;
}

}  // namespace braid
