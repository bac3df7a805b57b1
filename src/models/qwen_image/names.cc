#include "models/qwen_image/names.h"

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

const std::string kOurs = "double_blocks.*.", kTheirs = "transformer_blocks.*.";

std::vector<KeyRule> diffusers() {
  const auto attn = kTheirs + "attn.";
  std::vector<KeyRule> rows = {
      {"time_in.in_layer", {"time_text_embed.timestep_embedder.linear_1"}},
      {"time_in.out_layer", {"time_text_embed.timestep_embedder.linear_2"}},
      {"time_in.addition", {"time_text_embed.addition_t_embedding"}},
      {kOurs + "img_attn.qkv", {attn + "to_q", attn + "to_k", attn + "to_v"}},
      {kOurs + "img_attn.norm.query_norm", {attn + "norm_q"}},
      {kOurs + "img_attn.norm.key_norm", {attn + "norm_k"}},
      {kOurs + "img_attn.proj", {attn + "to_out.0"}},
      {kOurs + "txt_attn.qkv", {attn + "add_q_proj", attn + "add_k_proj", attn + "add_v_proj"}},
      {kOurs + "txt_attn.norm.query_norm", {attn + "norm_added_q"}},
      {kOurs + "txt_attn.norm.key_norm", {attn + "norm_added_k"}},
      {kOurs + "txt_attn.proj", {attn + "to_add_out"}},
      // diffusers has [scale | shift] here, everywhere else shift comes first
      {"final_layer.adaLN_modulation.1", {"norm_out.linear"}, {RowOrder::kSwapHalves}},
      {"final_layer.linear", {"proj_out"}}};
  for (const std::string side : {"img", "txt"}) {
    rows.push_back({kOurs + side + "_mod.lin", {kTheirs + side + "_mod.1"}});
    rows.push_back({kOurs + side + "_mlp.0", {kTheirs + side + "_mlp.net.0.proj"}});
    rows.push_back({kOurs + side + "_mlp.2", {kTheirs + side + "_mlp.net.2"}});
  }
  return rows;
}

// Names of trainers that drop an index, or of diffusers after fuse_qkv_projections().
std::vector<KeyRule> other_diffusers() {
  const auto attn = kTheirs + "attn.";
  return {{kOurs + "img_attn.proj", {attn + "to_out"}},
          {kOurs + "img_attn.qkv", {attn + "to_qkv"}},
          {kOurs + "txt_attn.qkv", {attn + "to_added_qkv"}},
          {kOurs + "img_mod.lin", {kTheirs + "img_mod"}},
          {kOurs + "txt_mod.lin", {kTheirs + "txt_mod"}}};
}

}  // namespace

Names qwen_image_names(const Checkpoint& checkpoint) {
  auto names = qwen_image_names_of_diffusers();
  for (const std::string prefix : kComfyPrefixes)
    if (checkpoint.find(prefix + "txt_norm.weight")) names.prefix = prefix;
  return names;
}

Names qwen_image_names_of_diffusers() {
  return {.spellings = diffusers(), .ignored = {kZeroReferenceTime}};
}

AdapterNames qwen_image_adapter_names() {
  return denoiser_adapter_names({{diffusers()}, {other_diffusers()}});
}

}  // namespace braid
