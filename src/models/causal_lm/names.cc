#include "models/causal_lm/names.h"

#include "base/error.h"

namespace braid {
namespace {

// llama.cpp's, of Qwen3, Qwen2.5-VL and Mistral, whose rows of q and k it stores for pairs that are
// rotated. Layers that nobody needs are left out.
Names names_of_llama_cpp(const Checkpoint& checkpoint, const CausalLmConfig& c) {
  const bool has_norms = checkpoint.find("blk.0.attn_q_norm.weight");
  require(has_norms == (c.head_norm == HeadNorm::kYes), checkpoint.source(), " is of a model ",
          has_norms ? "with" : "without", " norms of queries and keys, the text encoder is one ",
          has_norms ? "without" : "with", " them");
  const bool is_paired = !has_norms && c.attention_bias == AttentionBias::kNo;
  const RowOrder paired = is_paired ? RowOrder{RowOrder::kDeinterleave, c.head_width} : RowOrder{};
  const std::string layer = "layers.*.", attention = layer + "self_attn.", mlp = layer + "mlp.";
  return {.spellings = {{"embed_tokens", {"token_embd"}},
                        {attention + "q_proj", {"blk.*.attn_q"}, paired},
                        {attention + "k_proj", {"blk.*.attn_k"}, paired},
                        {attention + "v_proj", {"blk.*.attn_v"}},
                        {attention + "q_norm", {"blk.*.attn_q_norm"}},
                        {attention + "k_norm", {"blk.*.attn_k_norm"}},
                        {attention + "o_proj", {"blk.*.attn_output"}},
                        {mlp + "gate_proj", {"blk.*.ffn_gate"}},
                        {mlp + "up_proj", {"blk.*.ffn_up"}},
                        {mlp + "down_proj", {"blk.*.ffn_down"}},
                        {layer + "input_layernorm", {"blk.*.attn_norm"}},
                        {layer + "post_attention_layernorm", {"blk.*.ffn_norm"}},
                        {"norm", {"output_norm"}}},
          .ignored = {"output.weight", "output_norm.weight", "blk.**"}};
}

}  // namespace

std::vector<std::string> rotary_buffers() {
  std::vector<std::string> names = {"visual.rotary_pos_emb.inv_freq",
                                    "model.visual.rotary_pos_emb.inv_freq"};
  for (const std::string prefix :
       {"", "model.", "language_model.", "model.language_model.", "language_model.model."})
    for (const auto* const layer : {"", "layers.*.self_attn."})
      names.push_back(prefix + layer + "rotary_emb.inv_freq");
  return names;
}

Names causal_lm_names(const Checkpoint& checkpoint, const CausalLmConfig& config) {
  if (checkpoint.find("token_embd.weight")) return names_of_llama_cpp(checkpoint, config);
  // ComfyUI's files of Mistral hold their tokenizer, too
  Names names{.prefix = "model.",
              .ignored = {"lm_head.weight", "language_model.lm_head.weight", "vision_tower.**",
                          "multi_modal_projector.**", "model.vision_tower.**",
                          "model.multi_modal_projector.**", "visual.**", "model.visual.**",
                          "tekken_model"}};
  const auto buffers = rotary_buffers();
  names.ignored.insert(names.ignored.end(), buffers.begin(), buffers.end());
  // Qwen3ForCausalLM; Qwen3Model; Mistral3ForConditionalGeneration, older and newer, or
  // Qwen3VLForConditionalGeneration; Qwen3VLModel
  for (const char* prefix :
       {"model.", "", "language_model.model.", "model.language_model.", "language_model."})
    if (checkpoint.find(prefix + std::string("embed_tokens.weight"))) names.prefix = prefix;
  return names;
}

// Covers diffusers', peft's, sd-scripts', OneTrainer's and ComfyUI's names.
AdapterNames causal_lm_adapter_names() {
  AdapterNames names{.prefixes = {"text_encoder.", "text_encoder.base_model.model.",
                                  "base_model.model.text_encoder.", "lora_te_", "lora_te1_",
                                  "text_encoders.transformer."}};
  for (const std::string encoder :
       {"qwen3_4b", "qwen3_8b", "qwen3vl_4b", "qwen25_7b", "mistral3_24b"})
    names.prefixes.push_back("text_encoders." + encoder + ".transformer.");
  for (const char* prefix :
       {"model.", "", "language_model.model.", "model.language_model.", "language_model."})
    names.tables.push_back({.prefix = prefix});
  return names;
}

ShardingTable causal_lm_sharding(const CausalLmConfig& c) {
  const auto keys = column_parallel_grouped({}, c.head_width, c.num_heads);
  const Pieces heads{c.num_heads}, channels = pieces_of_mlp(c.mlp_hidden, c.num_heads);
  return {
      {"layers.*.self_attn.q_proj", column_parallel(heads)},
      {"layers.*.self_attn.k_proj", keys},
      {"layers.*.self_attn.v_proj", keys},
      {"layers.*.self_attn.o_proj", row_parallel(heads)},
      {"layers.*.mlp.gate_proj", column_parallel(channels)},
      {"layers.*.mlp.up_proj", column_parallel(channels)},
      {"layers.*.mlp.down_proj", row_parallel(channels)},
  };
}

}  // namespace braid
