#include "models/vae/names.h"

namespace braid {
namespace {

// Black Forest Labs' names are latent diffusion's, whose decoder levels count from the finest.
std::vector<KeyRule> spellings_in_one_file(const Checkpoint& checkpoint,
                                           const std::string& prefix) {
  std::vector<KeyRule> spellings;
  const auto add_level = [&](const std::string& ours, const std::string& theirs) {
    spellings.push_back({ours + ".resnets.*.conv_shortcut", {theirs + ".block.*.nin_shortcut"}});
    spellings.push_back({ours + ".resnets.*", {theirs + ".block.*"}});
    spellings.push_back({ours + ".downsamplers.0.conv", {theirs + ".downsample.conv"}});
    spellings.push_back({ours + ".upsamplers.0.conv", {theirs + ".upsample.conv"}});
  };
  int levels = 0;
  const auto level = [](int i) { return "decoder.up." + std::to_string(i); };
  while (checkpoint.find(prefix + level(levels) + ".block.0.norm1.weight")) ++levels;
  for (int i = 0; i < levels; ++i) {
    add_level("encoder.down_blocks." + std::to_string(i), "encoder.down." + std::to_string(i));
    add_level("decoder.up_blocks." + std::to_string(i), level(levels - 1 - i));
  }
  const std::string ours = "*.mid_block.", theirs = "*.mid.";
  const std::string attention = ours + "attentions.0.", attn = theirs + "attn_1.";
  spellings.insert(spellings.end(), {{ours + "resnets.0", {theirs + "block_1"}},
                                     {ours + "resnets.1", {theirs + "block_2"}},
                                     {attention + "group_norm", {attn + "norm"}},
                                     {attention + "qkv", {attn + "q", attn + "k", attn + "v"}},
                                     {attention + "to_out.0", {attn + "proj_out"}},
                                     {"*.conv_norm_out", {"*.norm_out"}},
                                     {"quant_conv", {"quant_conv"}},
                                     {"quant_conv", {"encoder.quant_conv"}},
                                     {"post_quant_conv", {"post_quant_conv"}},
                                     {"post_quant_conv", {"decoder.post_quant_conv"}}});
  return spellings;
}

}  // namespace

Names vae_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : {"", "first_stage_model.", "vae."})
    if (checkpoint.find(prefix + "decoder.mid.block_1.norm1.weight"))
      return {.spellings = spellings_in_one_file(checkpoint, prefix),
              .prefix = prefix,
              .ignored = {prefix + "bn.num_batches_tracked"}};
  if (checkpoint.find("decoder.norm_out.gamma"))  // Wan's; one picture needs no time convolutions
    return {.ignored = {"encoder.down_blocks.*.time_conv.*",
                        "decoder.up_blocks.*.upsamplers.0.time_conv.*"}};
  Names names{.ignored = {"bn.num_batches_tracked"}};
  const std::string attention = "*.mid_block.attentions.0.";
  // published before diffusers renamed its attention layers
  const bool old = checkpoint.find("decoder.mid_block.attentions.0.query.weight") != nullptr;
  if (old) {
    names.spellings = {
        {attention + "qkv", {attention + "query", attention + "key", attention + "value"}},
        {attention + "to_out.0", {attention + "proj_attn"}}};
  } else {
    names.spellings = {
        {attention + "qkv", {attention + "to_q", attention + "to_k", attention + "to_v"}}};
  }
  return names;
}

void adopt_decoder_widths(VaeConfig& config, const Checkpoint& checkpoint) {
  if (config.is_wan()) return;
  const auto names = vae_names(checkpoint);
  std::vector<std::int64_t> widths;
  for (std::size_t level = 0; level < config.widths.size(); ++level) {
    const auto path = "decoder.up_blocks." + std::to_string(level) + ".resnets.0.conv1.weight";
    const auto* const stored = checkpoint.find(origins_of(names, path).front().tensors.front());
    if (!stored || stored->entry.shape.empty()) return;
    widths.insert(widths.begin(), stored->entry.shape.front());
    if (widths.front() % config.norm_groups != 0) return;
  }
  if (widths != config.decoder_widths()) config.own_decoder_widths = widths;
}

}  // namespace braid
