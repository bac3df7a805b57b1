#include "models/qwen21/names.h"

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

constexpr const char* kQwen21Block = "transformer_blocks.*.";

std::vector<KeyRule> qwen21_attention() {
  const std::string attn = std::string(kQwen21Block) + "attn.";
  return {{attn + "qkv", {attn + "to_q", attn + "to_k", attn + "to_v"}},
          {attn + "out", {attn + "to_out.0"}},
          {"modulation", {"modulation.1"}}};
}

// An MLP's gate and value, apart or joined.
std::vector<KeyRule> with_any_mlps() {
  const std::string mlp = std::string(kQwen21Block) + "img_mlp.";
  auto rows = qwen21_attention();
  rows.push_back({mlp + "gate_up", {mlp + "gate_layer", mlp + "proj"}});
  rows.push_back({mlp + "gate_up", {mlp + "gate_up"}});
  return rows;
}

// Names of trainers that drop an index.
std::vector<KeyRule> without_indices() {
  const std::string attn = std::string(kQwen21Block) + "attn.";
  return {{attn + "out", {attn + "to_out"}}};
}

}  // namespace

Names qwen21_names(const Checkpoint& checkpoint) {
  auto names = qwen21_names_of_diffusers();
  for (const std::string prefix : kComfyPrefixes)
    if (checkpoint.find(prefix + "txt_in.text_norm.weight")) names.prefix = prefix;
  return names;
}

Names qwen21_names_of_diffusers() { return {with_any_mlps()}; }

Names qwen21_names_in_one_file() { return {qwen21_attention()}; }

AdapterNames qwen21_adapter_names() {
  return denoiser_adapter_names({{with_any_mlps()}, {without_indices()}});
}

}  // namespace braid
