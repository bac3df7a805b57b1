// Text encoders and the autoencoder from single files, as they are distributed beside a
// transformer: the directory's own pictures, or a one-sentence error.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "pipeline/engine/engine.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::part_files_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kModel = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity/basic/model";

std::map<std::string, Tensor> tensors_of(const Checkpoint& file) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, stored] : file.tensors()) tensors[name] = stored.view().clone();
  return tensors;
}

struct Files {
  std::vector<fs::path> text = {};
  fs::path vae = {};
};

Picture picture_of(const Files& files) {
  const PipelineOptions options{.model = kModel,
                                .text_encoder_files = files.text,
                                .vae_file = files.vae,
                                .dtype = Dtype::kFloat32};
  return Engine(options, {})
      .generate({.prompts = {"a red circle on a blue background"},
                 .width = 64,
                 .height = 48,
                 .steps = 1,
                 .max_sequence_length = 16},
                {})
      .pictures.front();
}

// The Black Forest Labs name of a tensor in diffusers' autoencoder.
std::string name_in_one_file(std::string name, int levels) {
  static const std::pair<const char*, const char*> kWords[] = {
      {"mid_block.resnets.0", "mid.block_1"},
      {"mid_block.resnets.1", "mid.block_2"},
      {"mid_block.attentions.0", "mid.attn_1"},
      {"group_norm", "norm"},
      {"to_q", "q"},
      {"to_k", "k"},
      {"to_v", "v"},
      {"to_out.0", "proj_out"},
      {"conv_norm_out", "norm_out"},
      {"conv_shortcut", "nin_shortcut"},
      {"downsamplers.0", "downsample"},
      {"upsamplers.0", "upsample"},
      {"down_blocks", "down"},
      {"resnets", "block"}};
  for (const auto& [ours, theirs] : kWords)
    name = std::regex_replace(name, std::regex(std::string("(^|\\.)") + ours + "\\."),
                              std::string("$1") + theirs + ".");
  std::smatch level;
  if (std::regex_match(name, level, std::regex("decoder\\.up_blocks\\.(\\d)\\.(.*)")))
    return "decoder.up." + std::to_string(levels - 1 - std::stoi(level[1])) + "." +
           std::string(level[2]);
  return name;
}

TEST(PartFiles, AnAutoencoderMayHaveItsAuthorsNames) {
  const TemporaryFolder folder;
  const auto own = tensors_of(Checkpoint::open(kModel / "vae", "diffusion_pytorch_model"));
  for (const std::string prefix : {"", "first_stage_model."}) {
    std::map<std::string, Tensor> theirs;
    for (const auto& [name, tensor] : own) {
      const bool is_matrix = tensor.dim() == 2;  // theirs is a 1x1 convolution
      theirs[prefix + name_in_one_file(name, 4)] =
          is_matrix ? tensor.unsqueeze(-1).unsqueeze(-1) : tensor;
    }
    ASSERT_TRUE(theirs.contains(prefix + "decoder.up.3.block.0.norm1.weight"));
    ASSERT_TRUE(theirs.contains(prefix + "decoder.mid.attn_1.proj_out.weight"));
    write_file(folder / "ae.safetensors", write_safetensors(theirs));
    EXPECT_EQ(picture_of({.vae = folder / "ae.safetensors"}).rgb, picture_of({}).rgb);
  }
}

TEST(PartFiles, EachTextEncoderIsTheOneThatItFits) {
  const TemporaryFolder folder;
  auto t5 = tensors_of(Checkpoint::open(kModel / "text_encoder_2", "model"));
  auto clip = tensors_of(Checkpoint::open(kModel / "text_encoder", "model"));
  for (auto& [name, tensor] : t5) tensor = tensor * 1.5;
  write_file(folder / "t5.safetensors", write_safetensors(t5));
  write_file(folder / "clip.safetensors", write_safetensors(clip));
  const auto own = picture_of({}).rgb;
  EXPECT_EQ(picture_of({.text = {folder / "clip.safetensors"}}).rgb, own);
  const auto swapped =
      picture_of({.text = {folder / "t5.safetensors", folder / "clip.safetensors"}});
  EXPECT_NE(swapped.rgb, own) << "the other T5 is used";
}

// The other half of T5, CLIP's pictures, and a tokenizer.
TEST(PartFiles, MayHoldMoreThanAnEncoder) {
  const TemporaryFolder folder;
  auto t5 = tensors_of(Checkpoint::open(kModel / "text_encoder_2", "model"));
  for (const auto* const name : {"lm_head.weight", "decoder.block.0.layer.0.layer_norm.weight"})
    t5[name] = at::ones({5});
  t5["spiece_model"] = at::ones({5}, at::kByte);
  auto clip = tensors_of(Checkpoint::open(kModel / "text_encoder", "model"));
  for (const auto* const name : {"logit_scale", "vision_model.post_layernorm.weight"})
    clip[name] = at::ones({5});
  write_file(folder / "t5.safetensors", write_safetensors(t5));
  write_file(folder / "clip.safetensors", write_safetensors(clip));
  const auto picture =
      picture_of({.text = {folder / "t5.safetensors", folder / "clip.safetensors"}});
  EXPECT_EQ(picture.rgb, picture_of({}).rgb);
}

TEST(PartFiles, ThatFitNothingAreRefused) {
  const auto vae = kModel / "vae/diffusion_pytorch_model.safetensors";
  const auto t5 = kModel / "text_encoder_2/model.safetensors";
  const auto refusal = [](const Files& files) { return message_of([&] { picture_of(files); }); };
  EXPECT_THAT(refusal({.text = {vae}}), HasSubstr("an autoencoder of 16 channels"));
  EXPECT_THAT(refusal({.vae = t5}), HasSubstr("is a T5 text encoder, not an autoencoder"));
  const auto small = kModel.parent_path().parent_path() / "klein/model/text_encoder";
  EXPECT_THAT(refusal({.text = {small / "model.safetensors"}}),
              HasSubstr("does not hold the weights that it was given for: not of CLIP"));
  EXPECT_THAT(refusal({.text = {t5, t5}}), HasSubstr("are the weights of T5"));
  EXPECT_THAT(refusal({.vae = "missing.safetensors"}), HasSubstr("missing.safetensors"));
}

}  // namespace braid::part_files_test
