#include "models/flux3/names.h"

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

// What the lists of blocks are called, with `*` for a mode or a block's number.
struct Lists {
  std::string ours, theirs;
};
const Lists kOwnLists[] = {{"txt_mode_blocks.*.", "txt_mode_blocks.*."},
                           {"content_mode_blocks.*.*.", "content_mode_blocks.*.*."},
                           {"single_blocks.*.", "single_blocks.*."}};
const Lists kListsOfDiffusers[] = {{"txt_mode_blocks.*.", "txt_mode_blocks.*."},
                                   {"content_mode_blocks.*.*.", "mode_blocks.*.*."},
                                   {"single_blocks.*.", "single_transformer_blocks.*."}};

// The parts of [q k v gate value] in files that keep the layers apart.
const std::vector<int> kAlone = {1, 1, 1, 2};

std::vector<KeyRule> black_forest_labs() {
  std::vector<KeyRule> rows;
  for (const auto& [ours, theirs] : kOwnLists)
    rows.insert(rows.end(),
                {{ours + "linear1",
                  {theirs + "q_proj", theirs + "k_proj", theirs + "v_proj", theirs + "mlp_in"},
                  {},
                  kAlone},
                 {ours + "norm.query_norm.weight", {theirs + "norm.query_norm.scale"}},
                 {ours + "norm.key_norm.weight", {theirs + "norm.key_norm.scale"}}});
  return rows;
}

std::vector<KeyRule> diffusers() {
  std::vector<KeyRule> rows = {
      {"emb_in.*", {"x_embedders.*"}},
      {"txt_in", {"context_embedder"}},
      {"time_in.in_layer", {"timestep_embedder.linear_1"}},
      {"time_in.out_layer", {"timestep_embedder.linear_2"}},
      {"ref_time_in.in_layer", {"target_timestep_embedder.linear_1"}},
      {"ref_time_in.out_layer", {"target_timestep_embedder.linear_2"}},
      {"early_stream_modulations.*.lin", {"early_stream_modulations.*.linear"}},
      {"single_stream_modulations.*.lin", {"single_stream_modulations.*.linear"}},
      // diffusers has [scale | shift] here, everywhere else shift comes first
      {"final_layer.image.adaLN_modulation.1", {"norm_out.linear"}, {RowOrder::kSwapHalves}},
      {"final_layer.image.linear", {"proj_out"}}};
  for (const auto& [ours, theirs] : kListsOfDiffusers) {
    const auto attn = theirs + "attn.", ff = theirs + "ff.";
    rows.insert(rows.end(), {{ours + "linear1",
                              {attn + "to_q", attn + "to_k", attn + "to_v", ff + "linear_in"},
                              {},
                              kAlone},
                             {ours + "norm.query_norm", {attn + "norm_q"}},
                             {ours + "norm.key_norm", {attn + "norm_k"}},
                             {ours + "attn_out", {attn + "to_out.0"}},
                             {ours + "mlp_out", {ff + "linear_out"}}});
  }
  return rows;
}

// Names after fuse_qkv_projections(), and of trainers that drop the index of to_out.
std::vector<KeyRule> other_diffusers() {
  std::vector<KeyRule> rows;
  for (const auto& [ours, theirs] : kListsOfDiffusers)
    rows.insert(rows.end(),
                {{ours + "linear1", {theirs + "attn.to_qkv", theirs + "ff.linear_in"}, {}, {3, 2}},
                 {ours + "attn_out", {theirs + "attn.to_out"}}});
  return rows;
}

// Heads that only training needs.
const std::string kOnlyTrained = "repa_projectors.**";

}  // namespace

Names flux3_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : kComfyPrefixes) {
    if (checkpoint.find(prefix + "emb_in.image.weight"))
      return {
          .spellings = black_forest_labs(), .prefix = prefix, .ignored = {prefix + kOnlyTrained}};
    if (checkpoint.find(prefix + "x_embedders.image.weight"))
      return {.spellings = diffusers(), .prefix = prefix, .ignored = {prefix + kOnlyTrained}};
  }
  return flux3_names_of_diffusers();
}

Names flux3_names_of_diffusers() { return {diffusers()}; }

Names flux3_names_in_one_file() { return {black_forest_labs()}; }

AdapterNames flux3_adapter_names() {
  return denoiser_adapter_names({{black_forest_labs()}, {diffusers()}, {other_diffusers()}});
}

}  // namespace braid
