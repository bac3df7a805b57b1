// The sizes of a causal language model that encodes prompts.
#pragma once

#include <cstdint>

#include "base/json.h"

namespace braid {

enum class HeadNorm { kNo, kYes };
// Which layers of attention have biases: none; those of queries, keys and values; also the one
// behind them.
enum class AttentionBias { kNo, kInputs, kAll };

// Defaults are Qwen3-4B's.
struct CausalLmConfig {
  std::int64_t vocab_size = 151936;
  std::int64_t hidden = 2560, mlp_hidden = 9728, num_layers = 36;
  std::int64_t num_heads = 32, num_kv_heads = 8, head_width = 128;
  HeadNorm head_norm = HeadNorm::kYes;  // of queries and keys, before rotation
  AttentionBias attention_bias = AttentionBias::kNo;
  double eps = 1e-6, theta = 1e6;
  std::int64_t window = 0;  // how many tokens back a token sees; 0: all
};

// The object that describes the rotary embedding: `rope_scaling` of older files, which stands for
// all of `rope_parameters` where it is not empty, as in transformers. Empty if there is neither.
JsonObject rope_object(const JsonObject& json);

// Throws InputError if so many tokens, a prompt's, are more than the model's window.
void require_within_window(const CausalLmConfig& config, std::int64_t tokens);

// Reads text_encoder/config.json: a Qwen3 or Mistral model, or one nested as `text_config`. Absent
// fields take the defaults of the reference class. Throws InputError naming the field.
CausalLmConfig read_causal_lm_config(const JsonObject& json);

// The same for the language model of a Qwen3-VL, from the `text_config` in its config.json.
CausalLmConfig read_qwen3_vl_text_config(const JsonObject& json);

// The same for the language model of a Qwen2.5-VL; older files have it beside the rest.
CausalLmConfig read_qwen25_vl_text_config(const JsonObject& json);

}  // namespace braid
