#include "models/qwen3_vl/names.h"

#include "models/causal_lm/names.h"

namespace braid {

Names qwen3_vl_names(const Checkpoint& checkpoint) {
  const bool is_bare = checkpoint.find("language_model.embed_tokens.weight") != nullptr;
  Names names{.prefix = is_bare ? "" : "model.", .ignored = rotary_buffers()};
  names.ignored.emplace_back("lm_head.weight");
  return names;
}

// Covers diffusers' and peft's names.
AdapterNames qwen3_vl_adapter_names() {
  return {.prefixes = {"text_encoder.", "text_encoder.base_model.model.",
                       "base_model.model.text_encoder.", "lora_te_", "lora_te1_"},
          .tables = {{.prefix = "model."}, {}}};
}

ShardingTable qwen3_vl_sharding(const Qwen3VlConfig& c) {
  auto shardings = causal_lm_sharding(c.text);
  for (auto& [layer, sharding] : shardings) layer = "language_model." + layer;
  return shardings;
}

}  // namespace braid
