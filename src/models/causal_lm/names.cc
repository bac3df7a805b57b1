#include "models/causal_lm/names.h"

#include "base/error.h"

namespace braid {

Names causal_lm_names(const Checkpoint& checkpoint) {
  Names names{.prefix = "model.",
              .ignored = {"lm_head.weight", "language_model.lm_head.weight", "vision_tower.**",
                          "multi_modal_projector.**", "model.vision_tower.**",
                          "model.multi_modal_projector.**"}};
  // Qwen3ForCausalLM; Qwen3Model; Mistral3ForConditionalGeneration, older and newer
  for (const char* prefix : {"model.", "", "language_model.model.", "model.language_model."})
    if (checkpoint.find(prefix + std::string("embed_tokens.weight"))) names.prefix = prefix;
  return names;
}

ShardingTable causal_lm_sharding(const CausalLmConfig& c, int size) {
  require(c.num_kv_heads % size == 0, "tensor parallelism over ", size,
          " devices cannot share the ", c.num_kv_heads,
          " heads of keys and values of the text encoder evenly");
  return {
      {"layers.*.self_attn.q_proj", column_parallel()},
      {"layers.*.self_attn.k_proj", column_parallel()},
      {"layers.*.self_attn.v_proj", column_parallel()},
      {"layers.*.self_attn.o_proj", row_parallel()},
      {"layers.*.mlp.gate_proj", column_parallel()},
      {"layers.*.mlp.up_proj", column_parallel()},
      {"layers.*.mlp.down_proj", row_parallel()},
  };
}

}  // namespace braid
