#include "models/causal_lm/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20;

// transformers' defaults for fields absent from config.json.
CausalLmConfig class_defaults(const std::string& type, const std::string& source) {
  CausalLmConfig c{.hidden = 4096, .num_layers = 32, .num_heads = 32, .theta = 10000};
  if (type == "qwen3") {
    c.mlp_hidden = 22016;
    c.num_kv_heads = 32;
    return c;
  }
  if (type == "qwen3_vl_text") {
    c.mlp_hidden = 22016;
    c.num_kv_heads = 32;
    c.theta = 500000;
    return c;
  }
  if (type == "qwen2_5_vl_text") {
    return {.vocab_size = 152064,
            .hidden = 8192,
            .mlp_hidden = 29568,
            .num_layers = 80,
            .num_heads = 64,
            .num_kv_heads = 8,
            .head_norm = HeadNorm::kNo,
            .attention_bias = AttentionBias::kInputs,
            .eps = 1e-5};
  }
  require(type == "mistral", source, ": 'model_type' should be qwen3 or mistral, it is '", type,
          "'");
  c.vocab_size = 32000;
  c.mlp_hidden = 14336;
  c.num_kv_heads = 8;
  c.head_norm = HeadNorm::kNo;
  c.window = 4096;
  return c;
}

double read_theta(const JsonObject& json, double otherwise) {
  const auto rope = rope_object(json);
  const auto type = rope.string_or("rope_type", rope.string_or("type", "default"));
  const bool is_of_axes = type == "mrope" && rope.has("mrope_section");  // as older files say it
  require(type == "default" || is_of_axes, rope.source(), ": 'rope_type' should be default, it is ",
          type);
  const auto theta = rope.number_or("rope_theta", json.number_or("rope_theta", otherwise));
  require(theta > 0, json.source(), ": 'rope_theta' should be positive, it is ", theta);
  return theta;
}

// Whether any layer attends within a window: all of Mistral's do, none of Qwen3-VL's, of others
// those that are listed or, without a list, those from `max_window_layers` on.
bool has_sliding_layers(const JsonObject& json, const std::string& type, std::int64_t num_layers) {
  if (type == "mistral") return true;
  if (type == "qwen3_vl_text" || !json.flag_or("use_sliding_window", false)) return false;
  const auto types = json.strings_or("layer_types", {});
  if (json.has("layer_types"))
    return std::find(types.begin(), types.end(), "sliding_attention") != types.end();
  const std::int64_t otherwise = type == "qwen2_5_vl_text" ? 80 : 28;
  return json.integer_or("max_window_layers", otherwise, INT64_MIN, INT64_MAX) < num_layers;
}

std::int64_t read_window(const JsonObject& json, const std::string& type, std::int64_t num_layers) {
  for (const auto& type : json.strings_or("layer_types", {}))
    require(type == "full_attention" || type == "sliding_attention", json.source(),
            ": 'layer_types' should name full_attention or sliding_attention, one is ", type);
  if (!has_sliding_layers(json, type, num_layers)) return 0;
  if (json.is_null("sliding_window")) return 0;
  return json.integer_or("sliding_window", 4096, 1, 1 << 30);
}

CausalLmConfig read_text_config(const JsonObject& json, const std::string& type) {
  auto c = class_defaults(type, json.source());
  c.vocab_size = json.integer_or("vocab_size", c.vocab_size, 1, 1 << 24);
  c.hidden = json.integer_or("hidden_size", c.hidden, 1, kMaxWidth);
  c.mlp_hidden = json.integer_or("intermediate_size", c.mlp_hidden, 1, kMaxWidth);
  c.num_layers = json.integer_or("num_hidden_layers", c.num_layers, 0, 10'000);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, 1 << 14);
  if (json.is_null("num_key_value_heads")) c.num_kv_heads = c.num_heads;
  c.num_kv_heads = json.integer_or("num_key_value_heads", c.num_kv_heads, 1, 1 << 14);
  const auto usual_width = c.head_norm == HeadNorm::kYes ? c.head_width : c.hidden / c.num_heads;
  c.head_width = json.integer_or("head_dim", usual_width, 2, 1 << 14);
  c.eps = json.number_or("rms_norm_eps", c.eps);
  require(c.eps >= 0, json.source(), ": 'rms_norm_eps' should not be below 0, it is ", c.eps);
  c.theta = read_theta(json, c.theta);
  c.window = read_window(json, type, c.num_layers);
  const auto activation = json.string_or("hidden_act", "silu");
  require(activation == "silu" || activation == "swish", json.source(),
          ": 'hidden_act' should be silu, it is ", activation);
  // Mistral's class knows no such field, nor does Qwen2.5-VL's.
  if (c.head_norm == HeadNorm::kYes && json.flag_or("attention_bias", false))
    c.attention_bias = AttentionBias::kAll;
  require(c.head_width % 2 == 0, json.source(), ": 'head_dim' should be even, it is ",
          c.head_width);
  require(c.num_heads % c.num_kv_heads == 0, json.source(), ": 'num_key_value_heads', ",
          c.num_kv_heads, ", should divide 'num_attention_heads', ", c.num_heads);
  return c;
}

}  // namespace

JsonObject rope_object(const JsonObject& json) {
  static const Json none = Json::object();
  for (const std::string key : {"rope_scaling", "rope_parameters"})
    if (json.has(key) && !json.at(key).empty())
      return {json.at(key), json.source() + ": '" + key + "'"};
  return {none, json.source()};
}

void require_within_window(const CausalLmConfig& c, std::int64_t tokens) {
  require(c.window == 0 || tokens <= c.window, "a prompt of ", tokens,
          " tokens is longer than the text encoder's sliding window, ", c.window);
}

CausalLmConfig read_causal_lm_config(const JsonObject& json) {
  const auto read = [](const JsonObject& text, const std::string& type) {
    require(type != "qwen3_vl_text", text.source(), ": 'model_type' should be qwen3 or mistral, ",
            "it is ", type, ", which looks at pictures");
    return read_text_config(text, type);
  };
  if (!json.has("text_config")) return read(json, json.string_or("model_type", ""));
  const JsonObject inner(json.at("text_config"), json.source() + ": 'text_config'");
  return read(inner, inner.string_or("model_type", "mistral"));
}

CausalLmConfig read_qwen3_vl_text_config(const JsonObject& json) {
  const auto type = json.string_or("model_type", "qwen3_vl_text");
  require(type == "qwen3_vl_text", json.source(), ": 'model_type' should be qwen3_vl_text, it is ",
          type);
  return read_text_config(json, type);
}

CausalLmConfig read_qwen25_vl_text_config(const JsonObject& json) {
  const std::string name = "qwen2_5_vl_text";
  const auto type = json.string_or("model_type", name);
  require(type == name || type == "qwen2_5_vl", json.source(), ": 'model_type' should be ", name,
          ", it is ", type);
  return read_text_config(json, name);
}

}  // namespace braid
