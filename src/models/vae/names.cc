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

// Wan's own names of a residual block, of ours in diffusers' order.
void add_wan_resnet(std::vector<KeyRule>& spellings, const std::string& ours,
                    const std::string& theirs) {
  for (const auto& [layer, place] :
       {std::pair{"norm1", "0"}, {"conv1", "2"}, {"norm2", "3"}, {"conv2", "6"}})
    spellings.push_back({ours + "." + layer, {theirs + ".residual." + place}});
  spellings.push_back({ours + ".conv_shortcut", {theirs + ".shortcut"}});
}

// Wan's own names of what stands outside of the levels, in the encoder or the decoder.
void add_wan_ends(std::vector<KeyRule>& spellings, const std::string& half) {
  add_wan_resnet(spellings, half + ".mid_block.resnets.0", half + ".middle.0");
  add_wan_resnet(spellings, half + ".mid_block.resnets.1", half + ".middle.2");
  for (const auto& [name, stored] : {std::pair{".conv_in", ".conv1"},
                                     {".norm_out", ".head.0"},
                                     {".conv_out", ".head.2"},
                                     {".mid_block.attentions.0.norm", ".middle.1.norm"},
                                     {".mid_block.attentions.0.to_qkv", ".middle.1.to_qkv"},
                                     {".mid_block.attentions.0.proj", ".middle.1.proj"}})
    spellings.push_back({half + name, {half + stored}});
}

// Wan 2.1's names: the layers of all levels are one list, with a level's resampling layer behind
// its blocks. So are diffusers' of the encoder.
Names flat_wan_names_in_one_file(const Checkpoint& checkpoint) {
  std::vector<KeyRule> spellings = {{"quant_conv", {"conv1"}}, {"post_quant_conv", {"conv2"}}};
  const auto has = [&](const std::string& name) { return checkpoint.find(name) != nullptr; };
  for (int i = 0;; ++i) {
    const auto ours = "encoder.down_blocks." + std::to_string(i);
    const auto theirs = "encoder.downsamples." + std::to_string(i);
    if (has(theirs + ".residual.0.gamma"))
      add_wan_resnet(spellings, ours, theirs);
    else if (has(theirs + ".resample.1.weight"))
      spellings.push_back({ours + ".resample.1", {theirs + ".resample.1"}});
    else
      break;
  }
  int level = 0, block = 0;
  for (int i = 0;; ++i) {
    const auto ours = "decoder.up_blocks." + std::to_string(level);
    const auto theirs = "decoder.upsamples." + std::to_string(i);
    if (has(theirs + ".residual.0.gamma")) {
      add_wan_resnet(spellings, ours + ".resnets." + std::to_string(block++), theirs);
    } else if (has(theirs + ".resample.1.weight")) {
      spellings.push_back({ours + ".upsamplers.0.resample.1", {theirs + ".resample.1"}});
      ++level;
      block = 0;
    } else {
      break;
    }
  }
  add_wan_ends(spellings, "encoder");
  add_wan_ends(spellings, "decoder");
  return {.spellings = std::move(spellings),
          .ignored = {"encoder.downsamples.*.time_conv.*", "decoder.upsamples.*.time_conv.*"}};
}

// Wan 2.2's names, in which a level's resampling layer follows its blocks: Qwen-Image-2.1's
// autoencoder in one file.
Names wan_names_in_one_file(const Checkpoint& checkpoint) {
  std::vector<KeyRule> spellings = {{"quant_conv", {"conv1"}}, {"post_quant_conv", {"conv2"}}};
  const auto add_half = [&](const std::string& half, const std::string& levels,
                            const std::string& theirs, const std::string& resample) {
    const auto layer = [&](int level, int number) {
      return half + theirs + "." + std::to_string(level) + theirs + "." + std::to_string(number);
    };
    for (int i = 0; checkpoint.find(layer(i, 0) + ".residual.0.gamma"); ++i) {
      const auto ours = half + levels + std::to_string(i);
      int blocks = 0;
      while (checkpoint.find(layer(i, blocks) + ".residual.0.gamma")) ++blocks;
      for (int k = 0; k < blocks; ++k)
        add_wan_resnet(spellings, ours + ".resnets." + std::to_string(k), layer(i, k));
      spellings.push_back({ours + resample + ".resample.1", {layer(i, blocks) + ".resample.1"}});
    }
    add_wan_ends(spellings, half);
  };
  add_half("encoder", ".down_blocks.", ".downsamples", ".downsampler");
  add_half("decoder", ".up_blocks.", ".upsamples", ".upsampler");
  return {.spellings = std::move(spellings),
          .ignored = {"encoder.downsamples.*.downsamples.*.time_conv.*",
                      "decoder.upsamples.*.upsamples.*.time_conv.*"}};
}

}  // namespace

Names vae_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : {"", "first_stage_model.", "vae."})
    if (checkpoint.find(prefix + "decoder.mid.block_1.norm1.weight"))
      return {.spellings = spellings_in_one_file(checkpoint, prefix),
              .prefix = prefix,
              .ignored = {prefix + "bn.num_batches_tracked"}};
  if (checkpoint.find("decoder.upsamples.0.upsamples.0.residual.0.gamma"))
    return wan_names_in_one_file(checkpoint);
  if (checkpoint.find("decoder.upsamples.0.residual.0.gamma"))
    return flat_wan_names_in_one_file(checkpoint);
  if (checkpoint.find("decoder.norm_out.gamma"))  // Wan's; one picture needs no time convolutions
    return {.ignored = {"encoder.down_blocks.*.time_conv.*",
                        "decoder.up_blocks.*.upsamplers.0.time_conv.*",
                        "encoder.down_blocks.*.downsampler.time_conv.*",
                        "decoder.up_blocks.*.upsampler.time_conv.*"}};
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
