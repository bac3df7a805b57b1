#include "models/qwen25_vl/names.h"

#include "models/causal_lm/names.h"

namespace braid {
namespace {

std::vector<std::string> unused_tensors() {
  auto names = rotary_buffers();
  names.emplace_back("lm_head.weight");
  return names;
}

}  // namespace

Names published_qwen25_vl_names() {
  Names names{.ignored = unused_tensors()};
  for (const std::string module :
       {"embed_tokens", "norm", "layers.*.input_layernorm", "layers.*.post_attention_layernorm",
        "layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj",
        "layers.*.self_attn.o_proj", "layers.*.mlp.gate_proj", "layers.*.mlp.up_proj",
        "layers.*.mlp.down_proj"})
    names.spellings.push_back({"language_model." + module, {"model." + module}});
  return names;
}

Names qwen25_vl_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : {"model.", ""})
    if (checkpoint.find(prefix + "language_model.embed_tokens.weight"))
      return {.prefix = prefix, .ignored = unused_tensors()};
  return published_qwen25_vl_names();
}

// Covers diffusers' and peft's names.
AdapterNames qwen25_vl_adapter_names() {
  return {.prefixes = {"text_encoder.", "text_encoder.base_model.model.",
                       "base_model.model.text_encoder.", "lora_te_", "lora_te1_"},
          .tables = {{.prefix = "model."}, {}, published_qwen25_vl_names()}};
}

ShardingTable qwen25_vl_sharding(const Qwen25VlConfig& c) {
  auto shardings = causal_lm_sharding(c.text);
  for (auto& [layer, sharding] : shardings) layer = "language_model." + layer;
  return shardings;
}

}  // namespace braid
