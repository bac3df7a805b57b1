#include "models/krea2/names.h"

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

// What the lists of blocks are called, with `*` for a block's number. Ours has all that sees only
// text in one block.
struct Lists {
  std::string ours, theirs;
};
const Lists kLists[] = {{"transformer_blocks.*.", "transformer_blocks.*."},
                        {"text_fusion.0.*.*.", "text_fusion.*.*."}};
const Lists kKreaLists[] = {{"transformer_blocks.*.", "blocks.*."},
                            {"text_fusion.0.*.*.", "txtfusion.*.*."}};

std::vector<KeyRule> diffusers() {
  std::vector<KeyRule> rows = {{"text_fusion.0.projector", {"text_fusion.projector"}},
                               {"text_fusion.0.txt_in", {"txt_in"}},
                               {"text_fusion.0.*.*.norm1", {"text_fusion.*.*.norm1"}},
                               {"text_fusion.0.*.*.norm2", {"text_fusion.*.*.norm2"}},
                               {"text_fusion.0.*.*.attn.norm_q", {"text_fusion.*.*.attn.norm_q"}},
                               {"text_fusion.0.*.*.attn.norm_k", {"text_fusion.*.*.attn.norm_k"}}};
  for (const auto& [ours, theirs] : kLists) {
    const auto attn = theirs + "attn.", ff = theirs + "ff.";
    rows.insert(rows.end(), {{ours + "attn.qg", {attn + "to_q", attn + "to_gate"}},
                             {ours + "attn.kv", {attn + "to_k", attn + "to_v"}},
                             {ours + "attn.out", {attn + "to_out.0"}},
                             {ours + "mlp.gate_up", {ff + "gate", ff + "up"}},
                             {ours + "mlp.down", {ff + "down"}}});
  }
  return rows;
}

// Names of trainers that drop the index of to_out.
std::vector<KeyRule> other_diffusers() {
  std::vector<KeyRule> rows;
  for (const auto& [ours, theirs] : kLists)
    rows.push_back({ours + "attn.out", {theirs + "attn.to_out"}});
  return rows;
}

// Krea's own. Some quantized files number layers that follow an activation from 0, or count the
// norm after the text's.
std::vector<KeyRule> krea() {
  std::vector<KeyRule> rows = {
      {"img_in", {"first"}},
      {"time_embed.linear_1", {"tmlp.0"}},
      {"time_embed.linear_2", {"tmlp.2"}},
      {"time_mod_proj", {"tproj.1"}},
      {"time_mod_proj", {"tproj.0"}},
      {"text_fusion.0.txt_in.norm.weight", {"txtmlp.0.scale"}},
      {"text_fusion.0.txt_in.norm.weight", {"txtmlp.1.scale"}},
      {"text_fusion.0.txt_in.linear_1", {"txtmlp.1"}},
      {"text_fusion.0.txt_in.linear_2", {"txtmlp.3"}},
      {"text_fusion.0.projector", {"txtfusion.projector"}},
      {"transformer_blocks.*.scale_shift_table", {"blocks.*.mod.lin"}, {RowOrder::kFlattened}},
      {"final_layer.linear", {"last.linear"}},
      {"final_layer.norm.weight", {"last.norm.scale"}},
      {"final_layer.scale_shift_table", {"last.modulation.lin"}}};
  for (const auto& [ours, theirs] : kKreaLists) {
    const auto attn = theirs + "attn.", mlp = theirs + "mlp.";
    rows.insert(rows.end(), {{ours + "attn.qg", {attn + "wq", attn + "gate"}},
                             {ours + "attn.kv", {attn + "wk", attn + "wv"}},
                             {ours + "attn.out", {attn + "wo"}},
                             {ours + "attn.norm_q.weight", {attn + "qknorm.qnorm.scale"}},
                             {ours + "attn.norm_k.weight", {attn + "qknorm.knorm.scale"}},
                             {ours + "norm1.weight", {theirs + "prenorm.scale"}},
                             {ours + "norm2.weight", {theirs + "postnorm.scale"}},
                             {ours + "mlp.gate_up", {mlp + "gate", mlp + "up"}},
                             {ours + "mlp.down", {mlp + "down"}}});
  }
  return rows;
}

}  // namespace

Names krea2_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : kComfyPrefixes) {
    if (checkpoint.find(prefix + "txtfusion.projector.weight"))
      return {.spellings = krea(), .prefix = prefix};
    if (checkpoint.find(prefix + "text_fusion.projector.weight"))
      return {.spellings = diffusers(), .prefix = prefix};
  }
  return krea2_names_of_diffusers();
}

Names krea2_names_of_diffusers() { return {diffusers()}; }

Names krea2_names_in_one_file() { return {krea()}; }

AdapterNames krea2_adapter_names() {
  return denoiser_adapter_names({{krea()}, {diffusers()}, {other_diffusers()}});
}

}  // namespace braid
