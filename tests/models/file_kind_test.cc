// What files are, by tensor names of published files: as in the models' repositories and in
// diffusers' and ComfyUI's lists of keys.
#include "models/kinds/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/kinds/adapted_model.h"
#include "weights/files.h"
#include "weights/files/whole_checkpoint.h"

namespace braid::file_kind_test {

using testing::AllOf;
using testing::HasSubstr;
using namespace testing_files;

struct Named {
  std::string name;
  std::vector<std::int64_t> shape = {1};
};

class FileKinds : public testing::Test {
 protected:
  FileKind kind(const std::vector<Named>& names) const {
    std::vector<FloatTensor> tensors;
    for (const auto& [name, shape] : names) {
      std::int64_t count = 1;
      for (const auto extent : shape) count *= extent;
      tensors.push_back({name, shape, std::vector<float>(std::size_t(count))});
    }
    write_file(folder_ / "file.safetensors", float_file(tensors));
    return kind_of_file(Checkpoint::open_file(folder_ / "file.safetensors"));
  }
  std::string name(const std::vector<Named>& names) const { return kind(names).name; }
  const TemporaryFolder folder_;
};

TEST_F(FileKinds, AreArchitecturesThatBraidDoesNotRun) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kMarks = {
      {"Chroma",
       {"distilled_guidance_layer.in_proj.weight",
        "model.diffusion_model.distilled_guidance_layer.layers.0.in_layer.weight"}},
      {"Stable Diffusion 3",
       {"joint_blocks.0.context_block.attn.qkv.weight",
        "model.diffusion_model.joint_blocks.0.x_block.attn.qkv.weight"}},
      {"Stable Diffusion",
       {"model.diffusion_model.input_blocks.0.0.weight",
        "model.diffusion_model.middle_block.0.in_layers.0.weight"}},
      {"Wan",
       {"blocks.0.cross_attn.k.weight", "model.diffusion_model.head.modulation",
        "patch_embedding.weight", "condition_embedder.time_proj.weight"}},
      {"HunyuanVideo",
       {"txt_in.individual_token_refiner.blocks.0.mlp.fc1.weight",
        "context_embedder.token_refiner.refiner_blocks.0.norm1.weight"}},
      {"LTX-Video", {"patchify_proj.weight", "adaln_single.emb.timestep_embedder.linear_1.weight"}},
      {"HiDream", {"double_stream_blocks.0.block.adaLN_modulation.1.weight"}},
      {"Lumina 2", {"time_caption_embed.timestep_embedder.linear_1.weight"}},
      {"AuraFlow", {"cond_seq_linear.weight"}},
      {"Mochi", {"t5_y_embedder.to_q.weight"}},
      {"CogVideoX", {"patch_embed.text_proj.weight"}},
      {"Cosmos", {"net.blocks.block0.blocks.0.block.attn.to_q.0.weight"}},
      {"Z-Image Omni", {"siglip_embedder.0.weight"}},
      {"FLUX.3", {"content_mode_blocks.image.0.attn_out.weight"}}};
  for (const auto& [words, marks] : kMarks)
    for (const auto& mark : marks) {
      const auto found = kind({{mark}});
      EXPECT_EQ(found.role, FileRole::kModel) << mark;
      EXPECT_EQ(found.family, "") << mark;
      EXPECT_THAT(found.name, HasSubstr(words)) << mark;
      EXPECT_THAT(
          misuse_of_file("a.safetensors", found, FileRole::kModel),
          AllOf(HasSubstr("a.safetensors is " + found.name), HasSubstr("does not run"),
                HasSubstr("FLUX.1, FLUX.2, FLUX.3, Z-Image, JoyAI-Image-Edit, Krea 2, Qwen-Image "
                          "and Qwen-Image-2.1")));
    }
}

TEST_F(FileKinds, OfStableDiffusionAreToldByTheirShapes) {
  const std::string unet = "model.diffusion_model.", first = unet + "input_blocks.0.0.weight";
  const auto key = unet + "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight";
  EXPECT_THAT(name({{first}, {key, {2, 768}}}), HasSubstr("SD1.5"));
  EXPECT_THAT(name({{first}, {key, {2, 1024}}}), HasSubstr("SD2"));
  EXPECT_THAT(name({{first}, {unet + "label_emb.0.0.weight"}}), HasSubstr("SDXL"));
  EXPECT_THAT(name({{"conv_in.weight"},
                    {"down_blocks.0.resnets.0.conv1.weight"},
                    {"add_embedding.linear_1.weight"}}),
              HasSubstr("SDXL"));
  EXPECT_THAT(name({{first}, {"first_stage_model.encoder.conv_in.weight"}}), HasSubstr("SDXL"))
      << "one of them";
}

TEST_F(FileKinds, AreModelsThatBraidRuns) {
  const std::vector<std::pair<std::string, std::string>> kMarks = {
      {"double_blocks.0.img_attn.qkv.weight", "FLUX.1"},
      {"model.diffusion_model.single_blocks.0.linear1.weight", "FLUX.1"},
      {"single_transformer_blocks.0.attn.to_q.weight", "FLUX.1"},
      {"single_stream_modulation.lin.weight", "FLUX.2"},
      {"transformer.single_stream_modulation.linear.weight", "FLUX.2"},
      {"x_pad_token", "Z-Image"},
      {"double_blocks.0.img_mod.modulate_table", "JoyAI-Image-Edit"},
      {"transformer_blocks.0.img_mod.1.weight", "Qwen-Image"},
      {"model.diffusion_model.txt_norm.weight", "Qwen-Image"},
      {"model.diffusion_model.txt_in.text_norm.weight", "Qwen-Image-2.1"}};
  for (const auto& [mark, family] : kMarks) EXPECT_EQ(kind({{mark}}).family, family) << mark;
  const std::string parity = BRAID_SOURCE_DIR "/tests/data/parity/";
  const auto of_krea2 = kind_of_file(Checkpoint::open_file(
      parity + "krea2/model/transformer/diffusion_pytorch_model.safetensors"));
  EXPECT_EQ(of_krea2.family, "Krea 2") << "its layers are called up and down, as a LoRA's parts";
  EXPECT_EQ(
      kind({{"noise_refiner.0.ffn_norm1.weight"}, {"cap_embedder.1.weight", {3840, 1}}}).family,
      "Z-Image");
}

// What torch.compile, FSDP and DDP insert, and the names of members, also around each other. Such
// files run: denoiser_in() finds the same names in them.
TEST_F(FileKinds, AreToldBehindWhateverWrapsThem) {
  const std::vector<std::pair<std::string, std::string>> kMarks = {
      {"double_blocks.0.img_attn.qkv.weight", "FLUX.1"},
      {"single_transformer_blocks.0.attn.to_q.weight", "FLUX.1"},
      {"single_stream_modulation.lin.weight", "FLUX.2"},
      {"txt_mode_blocks.0.linear1.weight", "FLUX.3"},
      {"x_pad_token", "Z-Image"},
      {"double_blocks.0.img_mod.modulate_table", "JoyAI-Image-Edit"},
      {"txtfusion.projector.weight", "Krea 2"},
      {"txt_norm.weight", "Qwen-Image"},
      {"txt_in.text_norm.weight", "Qwen-Image-2.1"}};
  for (const std::string prefix :
       {"_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "_fsdp_wrapped_module.", "module.",
        "net.", "transformer.", "model.diffusion_model._orig_mod.",
        "_orig_mod.model.diffusion_model.", "net._checkpoint_wrapped_module.transformer."})
    for (const auto& [mark, family] : kMarks) {
      EXPECT_EQ(kind({{prefix + mark}}).family, family) << prefix << mark;
      const auto denoiser = denoiser_in(Checkpoint::open_file(folder_ / "file.safetensors"));
      EXPECT_NE(denoiser.find(mark), nullptr) << prefix << mark;
    }
  EXPECT_EQ(kind({{"_orig_mod.joint_blocks.0.x_block.attn.qkv.weight"}}).role, FileRole::kModel);
  EXPECT_EQ(kind({{"module._orig_mod.decoder.conv_in.weight"}}).role, FileRole::kAutoencoder);
  EXPECT_EQ(kind({{"their_orig_mod.double_blocks.0.weight"}}).role, FileRole::kUnknown);
}

TEST_F(FileKinds, ArePartsAndAdditions) {
  const struct {
    std::vector<Named> names;
    FileRole role;
    std::string words, flag;
  } kFiles[] = {
      {{{"transformer.single_transformer_blocks.0.attn.to_q.lora_A.weight"}},
       FileRole::kAdapter,
       "a LoRA for a FLUX.1 or FLUX.3 model",
       "`adapters`"},
      {{{"lora_unet_input_blocks_4_1_proj_in.lora_down.weight"}},
       FileRole::kAdapter,
       "a LoRA for a Stable Diffusion",
       "`adapters`"},
      {{{"oft_unet.double_blocks.0.oft_blocks"}}, FileRole::kAdapter, "a LoRA", "`adapters`"},
      {{{"decoder.conv_in.weight", {1, 16, 1, 1}}},
       FileRole::kAutoencoder,
       "16 channels",
       "`vae_file`"},
      {{{"first_stage_model.decoder.conv_in.weight", {1, 4, 1, 1}}},
       FileRole::kAutoencoder,
       "Stable Diffusion's",
       "`vae_file`"},
      {{{"decoder.middle.0.residual.0.gamma"}}, FileRole::kAutoencoder, "Wan's", "`vae_file`"},
      {{{"shared.weight", {2, 4096}}}, FileRole::kTextEncoder, "T5-XXL", "`text_encoder_files`"},
      {{{"enc.blk.0.attn_q.weight"}}, FileRole::kTextEncoder, "T5", "`text_encoder_files`"},
      {{{"text_model.embeddings.token_embedding.weight", {2, 768}}},
       FileRole::kTextEncoder,
       "CLIP-L",
       "`text_encoder_files`"},
      {{{"model.layers.0.self_attn.q_norm.weight"},
        {"model.layers.0.input_layernorm.weight", {2560}}},
       FileRole::kTextEncoder,
       "Qwen3 4B",
       "`text_encoder_files`"},
      {{{"blk.0.attn_q.weight"}, {"token_embd.weight"}},
       FileRole::kTextEncoder,
       "a language model",
       "`text_encoder_files`"},
      {{{"controlnet_blocks.0.weight"}, {"x_embedder.weight"}},
       FileRole::kControlNet,
       "a ControlNet",
       "`controlnets`"},
      {{{"control_model.input_blocks.0.0.weight"}},
       FileRole::kControlNet,
       "a ControlNet of Stable Diffusion",
       "`controlnets`"},
      {{{"redux_up.weight"}}, FileRole::kRedux, "Redux", "`redux`"},
      {{{"ip_adapter_proj_model.proj.weight"}}, FileRole::kOther, "an IP-Adapter", "no use"},
      {{{"emb_params"}}, FileRole::kOther, "textual inversion", "no use"}};
  for (const auto& [names, role, words, flag] : kFiles) {
    const auto found = kind(names);
    EXPECT_EQ(found.role, role) << words;
    EXPECT_THAT(found.name, HasSubstr(words));
    EXPECT_THAT(misuse_of_file("a", found, FileRole::kModel),
                AllOf(HasSubstr(", not a model"), HasSubstr(flag)));
  }
  EXPECT_EQ(kind({{"weight"}, {"bias"}}).role, FileRole::kUnknown);
}

const std::string kParity = BRAID_SOURCE_DIR "/tests/data/parity/";

// The families whose adapters are in the folders of tests/data/parity/adapters.
const std::map<std::string, std::string> kFamilies = {
    {"flux", "FLUX.1"},           {"flux2", "FLUX.2"},         {"flux3", "FLUX.3"},
    {"joy", "JoyAI-Image-Edit"},  {"krea2", "Krea 2"},         {"zimage", "Z-Image"},
    {"qwen21", "Qwen-Image-2.1"}, {"qwen-image", "Qwen-Image"}};

// These change only layers that others of the families have, too, with names of FLUX.1's blocks or
// diffusers' after fuse_qkv_projections().
const std::map<std::string, std::string> kOfSeveral = {
    {"flux2/lokr", "a FLUX.1 or FLUX.2 model"},
    {"flux2/fused", "a FLUX.1, FLUX.2 or Qwen-Image model"}};

template <class Look>
void look_at_adapters(const Look& look) {
  std::set<std::string> seen;
  for (const auto& folder : fs::directory_iterator(kParity + "adapters"))
    for (const auto& file : fs::directory_iterator(folder.path())) {
      const auto of = folder.path().filename().string(), name = file.path().stem().string();
      if (file.path().extension() != ".safetensors" || name == "expected") continue;
      SCOPED_TRACE(of + "/" + name);
      seen.insert(of);
      look(file.path(), of + "/" + name, kFamilies.at(of));
    }
  EXPECT_EQ(seen.size(), kFamilies.size());
}

TEST_F(FileKinds, OfAdaptersNameTheFamilyWhoseLayersTheyChange) {
  look_at_adapters([](const fs::path& path, const std::string& file, const std::string& family) {
    const auto several = kOfSeveral.find(file);
    const auto model = several != kOfSeveral.end() ? several->second
                       : family == "Z-Image"       ? "a Z-Image or Lumina 2 model"
                                                   : "a " + family + " model";
    EXPECT_EQ(kind_of_file(Checkpoint::open_file(path)).name, "a LoRA for " + model);
  });
}

// A change of every layer of a model, in the names of its own files.
TEST_F(FileKinds, OfAdaptersForWholeModelsNameTheirFamily) {
  const std::pair<const char*, const char*> kModels[] = {
      {"basic", "FLUX.1"},          {"klein", "FLUX.2"},         {"flux2-dev", "FLUX.2"},
      {"flux3", "FLUX.3"},          {"krea2", "Krea 2"},         {"joy", "JoyAI-Image-Edit"},
      {"qwen21", "Qwen-Image-2.1"}, {"zimage-turbo", "Z-Image"}, {"qwen-image", "Qwen-Image"}};
  for (const auto& [folder, family] : kModels) {
    const auto model =
        Checkpoint::open(kParity + folder + "/model/transformer", "diffusion_pytorch_model");
    std::vector<Named> modules;
    for (const auto& [name, stored] : model.tensors()) {
      const bool is_layer = name.ends_with(".weight") && stored.entry.shape.size() > 1;
      const auto module = name.substr(0, name.size() - std::string(".weight").size());
      if (is_layer) modules.push_back({"transformer." + module + ".lora_A.weight"});
    }
    EXPECT_GT(modules.size(), 10u) << folder;
    EXPECT_THAT(name(modules), HasSubstr(std::string("a LoRA for a ") + family)) << folder;
    EXPECT_THAT(name(modules), testing::Not(HasSubstr("FLUX.1 or"))) << folder;
    std::vector<std::string> underscored_modules;
    for (const auto& module : modules)
      underscored_modules.push_back(underscored(parse_adapter_key(module.name).module));
    EXPECT_THAT(families_of_adapter(underscored_modules), testing::ElementsAre(family)) << folder;
  }
}

TEST_F(FileKinds, OfAdaptersForOtherModelsAreSaid) {
  look_at_adapters([](const fs::path& path, const std::string& file, const std::string& family) {
    const AdapterFile adapter(path);
    EXPECT_EQ(likeness_of_adapter(adapter, family), "");
    EXPECT_EQ(likeness_of_adapter(adapter, "a toy"), "");
    const auto own = kOfSeveral.contains(file) ? kOfSeveral.at(file) : family;
    for (const auto& [folder, other] : kFamilies) {
      const bool is_own =
          own.find(other) != own.npos && !(own == "Qwen-Image-2.1" && other == "Qwen-Image");
      if (is_own) continue;
      EXPECT_THAT(likeness_of_adapter(adapter, other), HasSubstr("it looks like a LoRA for "))
          << other;
    }
  });
  const auto said = [&](const std::vector<Named>& names) {
    EXPECT_EQ(kind(names).role, FileRole::kAdapter);
    return likeness_of_adapter(AdapterFile(folder_ / "file.safetensors"), "FLUX.1");
  };
  EXPECT_THAT(said({{"lora_unet_down_blocks_1_attentions_0_proj_in.lora_down.weight"}}),
              HasSubstr("it looks like a LoRA for a Stable Diffusion model"));
  EXPECT_EQ(said({{"transformer.elsewhere.lora_A.weight"}}), "") << "it is like none";
  EXPECT_EQ(said({{"transformer.transformer_blocks.0.attn.to_q.lora_A.weight"}}), "")
      << "five families have such a layer";
}

TEST_F(FileKinds, OfAdaptersForNormsAloneNameTheirFamily) {
  EXPECT_EQ(name({{"diffusion_model.layers.0.attention_norm1.diff"}}),
            "a LoRA for a Z-Image or Lumina 2 model");
  EXPECT_EQ(name({{"diffusion_model.txt_in.text_norm.diff"}}), "a LoRA for a Qwen-Image-2.1 model");
}

TEST_F(FileKinds, OfAdaptersForManyFamiliesOrNoneNameNone) {
  EXPECT_EQ(name({{"transformer.transformer_blocks.0.attn.to_q.lora_A.weight"}}), "a LoRA");
  EXPECT_EQ(name({{"transformer.elsewhere.lora_A.weight"}}), "a LoRA");
  EXPECT_EQ(name({{"text_encoder.text_model.encoder.layers.0.mlp.fc1.lora_A.weight"}}), "a LoRA");
  EXPECT_EQ(name({{"transformer.transformer_blocks.0.attn.add_q_proj.lora_A.weight"}}),
            "a LoRA for a FLUX.1, FLUX.2 or Qwen-Image model");
  EXPECT_EQ(name({{"transformer.single_transformer_blocks.0.proj_mlp.lora_A.weight"},
                  {"text_encoder.text_model.encoder.layers.0.mlp.fc1.lora_A.weight"},
                  {"text_encoder_2.encoder.block.0.layer.0.SelfAttention.q.lora_A.weight"}}),
            "a LoRA for a FLUX.1 model")
      << "text encoders' layers count for none";
}

TEST_F(FileKinds, OfModelsAreToldFromPartsThatTheyHold) {
  EXPECT_EQ(
      kind({{"model.diffusion_model.double_blocks.0.img_attn.qkv.weight"},
            {"vae.decoder.conv_in.weight"},
            {"text_encoders.clip_l.transformer.text_model.embeddings.token_embedding.weight"}})
          .family,
      "FLUX.1");
  EXPECT_THAT(
      misuse_of_file("a", kind({{"double_blocks.0.img_attn.qkv.weight"}}), FileRole::kAutoencoder),
      AllOf(HasSubstr("a is a FLUX.1 transformer, not an autoencoder"), HasSubstr("`model`")));
}

}  // namespace braid::file_kind_test
