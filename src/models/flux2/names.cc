#include "models/flux2/names.h"

#include "models/flux/names.h"
#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

const std::string kOnlyOneFile =
    "single_stream_modulation.lin.weight";  // absent in FLUX.1 and from diffusers
const std::string kOnlyDiffusers = "single_stream_modulation.linear.weight";

const std::vector<KeyRule> kDiffusers = {
    {"img_in", {"x_embedder"}},
    {"txt_in", {"context_embedder"}},
    {"time_in.in_layer", {"time_guidance_embed.timestep_embedder.linear_1"}},
    {"time_in.out_layer", {"time_guidance_embed.timestep_embedder.linear_2"}},
    {"guidance_in.in_layer", {"time_guidance_embed.guidance_embedder.linear_1"}},
    {"guidance_in.out_layer", {"time_guidance_embed.guidance_embedder.linear_2"}},
    {"double_stream_modulation_img.lin", {"double_stream_modulation_img.linear"}},
    {"double_stream_modulation_txt.lin", {"double_stream_modulation_txt.linear"}},
    {"single_stream_modulation.lin", {"single_stream_modulation.linear"}},

    {"double_blocks.*.img_attn.qkv",
     {"transformer_blocks.*.attn.to_q", "transformer_blocks.*.attn.to_k",
      "transformer_blocks.*.attn.to_v"}},
    {"double_blocks.*.img_attn.norm.query_norm", {"transformer_blocks.*.attn.norm_q"}},
    {"double_blocks.*.img_attn.norm.key_norm", {"transformer_blocks.*.attn.norm_k"}},
    {"double_blocks.*.img_attn.proj", {"transformer_blocks.*.attn.to_out.0"}},
    {"double_blocks.*.img_mlp.0", {"transformer_blocks.*.ff.linear_in"}},
    {"double_blocks.*.img_mlp.2", {"transformer_blocks.*.ff.linear_out"}},

    {"double_blocks.*.txt_attn.qkv",
     {"transformer_blocks.*.attn.add_q_proj", "transformer_blocks.*.attn.add_k_proj",
      "transformer_blocks.*.attn.add_v_proj"}},
    {"double_blocks.*.txt_attn.norm.query_norm", {"transformer_blocks.*.attn.norm_added_q"}},
    {"double_blocks.*.txt_attn.norm.key_norm", {"transformer_blocks.*.attn.norm_added_k"}},
    {"double_blocks.*.txt_attn.proj", {"transformer_blocks.*.attn.to_add_out"}},
    {"double_blocks.*.txt_mlp.0", {"transformer_blocks.*.ff_context.linear_in"}},
    {"double_blocks.*.txt_mlp.2", {"transformer_blocks.*.ff_context.linear_out"}},

    {"single_blocks.*.linear1", {"single_transformer_blocks.*.attn.to_qkv_mlp_proj"}},
    {"single_blocks.*.linear2", {"single_transformer_blocks.*.attn.to_out"}},
    {"single_blocks.*.norm.query_norm", {"single_transformer_blocks.*.attn.norm_q"}},
    {"single_blocks.*.norm.key_norm", {"single_transformer_blocks.*.attn.norm_k"}},

    // diffusers has [scale | shift] here, everywhere else shift comes first
    {"final_layer.adaLN_modulation.1", {"norm_out.linear"}, {RowOrder::kSwapHalves}},
    {"final_layer.linear", {"proj_out"}},
};

// diffusers' names after fuse_qkv_projections(), and of trainers that drop the index of to_out.
const std::vector<KeyRule> kOtherDiffusers = {
    {"double_blocks.*.img_attn.qkv", {"transformer_blocks.*.attn.to_qkv"}},
    {"double_blocks.*.txt_attn.qkv", {"transformer_blocks.*.attn.to_added_qkv"}},
    {"double_blocks.*.img_attn.proj", {"transformer_blocks.*.attn.to_out"}},
};

// The truncation of one trainer: "sformer_blocks.0" for "transformer_blocks.0".
std::vector<KeyRule> cut_diffusers() {
  const std::string cut = "tran", begin = cut + "sformer_blocks.";
  std::vector<KeyRule> spellings;
  for (auto spelling : kDiffusers) {
    if (!spelling.stored.front().starts_with(begin)) continue;
    for (auto& name : spelling.stored) name.erase(0, cut.size());
    spellings.push_back(std::move(spelling));
  }
  return spellings;
}

}  // namespace

Names flux2_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : kComfyPrefixes) {
    if (checkpoint.find(prefix + kOnlyOneFile)) return {flux_names_in_one_file().spellings, prefix};
    if (checkpoint.find(prefix + kOnlyDiffusers)) return {kDiffusers, prefix};
  }
  return {kDiffusers};
}

Names flux2_names_of_diffusers() { return {kDiffusers}; }

Names flux2_names_in_one_file() { return flux_names_in_one_file(); }

AdapterNames flux2_adapter_names() {
  return denoiser_adapter_names(
      {flux_names_in_one_file(), {kDiffusers}, {cut_diffusers()}, {kOtherDiffusers}});
}

}  // namespace braid
