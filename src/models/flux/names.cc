#include "models/flux/names.h"

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

// Norm scales are `scale` in Black Forest Labs' names and `weight` in ours.
const std::vector<KeyRule> kBlackForestLabs = {
    {"double_blocks.*.img_attn.norm.query_norm.weight",
     {"double_blocks.*.img_attn.norm.query_norm.scale"}},
    {"double_blocks.*.img_attn.norm.key_norm.weight",
     {"double_blocks.*.img_attn.norm.key_norm.scale"}},
    {"double_blocks.*.txt_attn.norm.query_norm.weight",
     {"double_blocks.*.txt_attn.norm.query_norm.scale"}},
    {"double_blocks.*.txt_attn.norm.key_norm.weight",
     {"double_blocks.*.txt_attn.norm.key_norm.scale"}},
    {"single_blocks.*.norm.query_norm.weight", {"single_blocks.*.norm.query_norm.scale"}},
    {"single_blocks.*.norm.key_norm.weight", {"single_blocks.*.norm.key_norm.scale"}},
};

const std::vector<KeyRule> kDiffusers = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"time_in.in_layer", {"time_text_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_text_embed.timestep_embedder.linear_2"}},
    {"guidance_in.in_layer", {"time_text_embed.guidance_embedder.linear_1"}},
    {"guidance_in.out_layer", {"time_text_embed.guidance_embedder.linear_2"}},
    {"vector_in.in_layer", {"time_text_embed.text_embedder.linear_1"}},
    {"vector_in.out_layer", {"time_text_embed.text_embedder.linear_2"}},

    {"double_blocks.*.img_mod.lin", {"transformer_blocks.*.norm1.linear"}},
    {"double_blocks.*.img_attn.qkv",
     {"transformer_blocks.*.attn.to_q", "transformer_blocks.*.attn.to_k",
      "transformer_blocks.*.attn.to_v"}},
    {"double_blocks.*.img_attn.norm.query_norm", {"transformer_blocks.*.attn.norm_q"}},
    {"double_blocks.*.img_attn.norm.key_norm", {"transformer_blocks.*.attn.norm_k"}},
    {"double_blocks.*.img_attn.proj", {"transformer_blocks.*.attn.to_out.0"}},
    {"double_blocks.*.img_mlp.0", {"transformer_blocks.*.ff.net.0.proj"}},
    {"double_blocks.*.img_mlp.2", {"transformer_blocks.*.ff.net.2"}},

    {"double_blocks.*.txt_mod.lin", {"transformer_blocks.*.norm1_context.linear"}},
    {"double_blocks.*.txt_attn.qkv",
     {"transformer_blocks.*.attn.add_q_proj", "transformer_blocks.*.attn.add_k_proj",
      "transformer_blocks.*.attn.add_v_proj"}},
    {"double_blocks.*.txt_attn.norm.query_norm", {"transformer_blocks.*.attn.norm_added_q"}},
    {"double_blocks.*.txt_attn.norm.key_norm", {"transformer_blocks.*.attn.norm_added_k"}},
    {"double_blocks.*.txt_attn.proj", {"transformer_blocks.*.attn.to_add_out"}},
    {"double_blocks.*.txt_mlp.0", {"transformer_blocks.*.ff_context.net.0.proj"}},
    {"double_blocks.*.txt_mlp.2", {"transformer_blocks.*.ff_context.net.2"}},

    {"single_blocks.*.modulation.lin", {"single_transformer_blocks.*.norm.linear"}},
    {"single_blocks.*.linear1",
     {"single_transformer_blocks.*.attn.to_q", "single_transformer_blocks.*.attn.to_k",
      "single_transformer_blocks.*.attn.to_v", "single_transformer_blocks.*.proj_mlp"}},
    {"single_blocks.*.linear2", {"single_transformer_blocks.*.proj_out"}},
    {"single_blocks.*.norm.query_norm", {"single_transformer_blocks.*.attn.norm_q"}},
    {"single_blocks.*.norm.key_norm", {"single_transformer_blocks.*.attn.norm_k"}},

    // diffusers has [scale | shift] here, everywhere else shift comes first
    {"final_layer.adaLN_modulation.1", {"norm_out.linear"}, {RowOrder::kSwapHalves}},
    {"final_layer.linear", {"proj_out"}},
};

// Named after attention processors. For a single block they have no MLP part, whose rows come last
// in linear1.
const std::vector<KeyRule> kXLabs = {
    {"double_blocks.*.img_attn.qkv", {"double_blocks.*.processor.qkv_lora1"}},
    {"double_blocks.*.img_attn.proj", {"double_blocks.*.processor.proj_lora1"}},
    {"double_blocks.*.txt_attn.qkv", {"double_blocks.*.processor.qkv_lora2"}},
    {"double_blocks.*.txt_attn.proj", {"double_blocks.*.processor.proj_lora2"}},
    {"single_blocks.*.linear1",
     {"single_blocks.*.processor.qkv_lora", "single_blocks.*.processor.mlp_lora"}},
    {"single_blocks.*.linear2", {"single_blocks.*.processor.proj_lora"}},
};

// Not final_norm_out: its halves' order differs between versions.
const std::vector<KeyRule> kDiffSynth = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"time_in.in_layer", {"time_embedder.timestep_embedder.0"}},
    {"time_in.out_layer", {"time_embedder.timestep_embedder.2"}},
    {"guidance_in.in_layer", {"guidance_embedder.timestep_embedder.0"}},
    {"guidance_in.out_layer", {"guidance_embedder.timestep_embedder.2"}},
    {"vector_in.in_layer", {"pooled_text_embedder.0"}},
    {"vector_in.out_layer", {"pooled_text_embedder.2"}},
    {"double_blocks.*.img_mod.lin", {"blocks.*.norm1_a.linear"}},
    {"double_blocks.*.img_attn.qkv", {"blocks.*.attn.a_to_qkv"}},
    {"double_blocks.*.img_attn.proj", {"blocks.*.attn.a_to_out"}},
    {"double_blocks.*.img_mlp.0", {"blocks.*.ff_a.0"}},
    {"double_blocks.*.img_mlp.2", {"blocks.*.ff_a.2"}},
    {"double_blocks.*.txt_mod.lin", {"blocks.*.norm1_b.linear"}},
    {"double_blocks.*.txt_attn.qkv", {"blocks.*.attn.b_to_qkv"}},
    {"double_blocks.*.txt_attn.proj", {"blocks.*.attn.b_to_out"}},
    {"double_blocks.*.txt_mlp.0", {"blocks.*.ff_b.0"}},
    {"double_blocks.*.txt_mlp.2", {"blocks.*.ff_b.2"}},
    {"single_blocks.*.modulation.lin", {"single_blocks.*.norm.linear"}},
    {"single_blocks.*.linear1", {"single_blocks.*.to_qkv_mlp"}},
    {"single_blocks.*.linear2", {"single_blocks.*.proj_out"}},
    {"final_layer.linear", {"final_proj_out"}},
};

// OneTrainer's "OMI" format: Black Forest Labs' names with the parts of fused layers numbered.
const std::vector<KeyRule> kOneTrainer = {
    {"img_in", {"img_in.proj"}},
    {"double_blocks.*.img_attn.qkv",
     {"double_blocks.*.img_attn.qkv.0", "double_blocks.*.img_attn.qkv.1",
      "double_blocks.*.img_attn.qkv.2"}},
    {"double_blocks.*.txt_attn.qkv",
     {"double_blocks.*.txt_attn.qkv.0", "double_blocks.*.txt_attn.qkv.1",
      "double_blocks.*.txt_attn.qkv.2"}},
    {"single_blocks.*.linear1",
     {"single_blocks.*.linear1.0", "single_blocks.*.linear1.1", "single_blocks.*.linear1.2",
      "single_blocks.*.linear1.3"}},
};

// diffusers' names after fuse_qkv_projections(), and of trainers that drop the index of to_out.
const std::vector<KeyRule> kOtherDiffusers = {
    {"double_blocks.*.img_attn.qkv", {"transformer_blocks.*.attn.to_qkv"}},
    {"double_blocks.*.txt_attn.qkv", {"transformer_blocks.*.attn.to_added_qkv"}},
    {"double_blocks.*.img_attn.proj", {"transformer_blocks.*.attn.to_out"}},
    {"single_blocks.*.linear1",
     {"single_transformer_blocks.*.attn.to_qkv", "single_transformer_blocks.*.proj_mlp"}},
};

}  // namespace

Names flux_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : kComfyPrefixes) {
    if (checkpoint.find(prefix + "img_in.weight")) return {kBlackForestLabs, prefix};
    if (checkpoint.find(prefix + "x_embedder.weight")) return {kDiffusers, prefix};
  }
  return {kDiffusers};
}

Names flux_names_of_diffusers() { return {kDiffusers}; }

Names flux_names_in_one_file() { return {kBlackForestLabs}; }

AdapterNames flux_adapter_names() {
  return denoiser_adapter_names(
      {{kBlackForestLabs}, {kDiffusers}, {kXLabs}, {kDiffSynth}, {kOneTrainer}, {kOtherDiffusers}});
}

}  // namespace braid
