// Files and folders as people have them: a checkpoint with all parts, a transformer alone, trained
// parts as folders, names in Hugging Face's cache, files given for something else.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "message_of.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/missing_parts.h"
#include "pipeline/files/model_folder.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::given_files_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
const fs::path kModel = kParity / "basic/model";

std::map<std::string, Tensor> tensors_of(const fs::path& folder, const char* stem,
                                         const std::string& prefix = "") {
  std::map<std::string, Tensor> tensors;
  const auto file = Checkpoint::open(folder, stem);
  for (const auto& [name, stored] : file.tensors()) tensors[prefix + name] = stored.view().clone();
  return tensors;
}

void write_tensors(const fs::path& path, const std::map<std::string, Tensor>& tensors) {
  fs::create_directories(path.parent_path());
  write_file(path, write_safetensors(tensors));
}

// A copy of a model directory, with or without weights.
enum class Copied { kAll, kWithoutWeights };
void copy_model(const fs::path& model, const fs::path& to, Copied what = Copied::kAll) {
  for (const auto& entry :
       fs::recursive_directory_iterator(model, fs::directory_options::follow_directory_symlink)) {
    const bool is_left_out =
        what == Copied::kWithoutWeights && entry.path().extension() == ".safetensors";
    if (entry.is_directory() || is_left_out) continue;
    const auto copy = to / entry.path().lexically_relative(model);
    fs::create_directories(copy.parent_path());
    fs::copy_file(entry.path(), copy);
  }
}

class GivenFiles : public testing::Test {
 protected:
  GivenFiles() { copy_model(kModel, bare(), Copied::kWithoutWeights); }
  fs::path bare() const { return folder_ / "bare"; }
  // The transformer alone, in a file.
  fs::path transformer() const {
    const auto path = folder_ / "lone/flux.safetensors";
    if (!is_there(path))
      write_tensors(path, tensors_of(kModel / "transformer", "diffusion_pytorch_model"));
    return path;
  }
  fs::path whole() const {
    auto all =
        tensors_of(kModel / "transformer", "diffusion_pytorch_model", "model.diffusion_model.");
    all.merge(tensors_of(kModel / "text_encoder", "model", texts_ + "clip_l.transformer."));
    all.merge(tensors_of(kModel / "text_encoder_2", "model", texts_ + "t5xxl.transformer."));
    all.merge(tensors_of(kModel / "vae", "diffusion_pytorch_model", vae_));
    write_tensors(folder_ / "whole.safetensors", all);
    return folder_ / "whole.safetensors";
  }
  static std::string refusal(const PipelineOptions& options) {
    return message_of([&] { (void)find_model(options); });
  }
  const TemporaryFolder folder_;
  std::string texts_ = "text_encoders.", vae_ = "vae.";
};

// ------------------------------------------------------------------------------ all in one

TEST_F(GivenFiles, WithAllPartsNeedNoOthers) {
  for (const char* const vae : {"vae.", "first_stage_model."})
    for (const char* const texts : {"text_encoders.", "cond_stage_model."}) {
      vae_ = vae;
      texts_ = texts;
      const auto file = whole();
      const auto files = find_model({.model = file, .components = bare()}).files;
      ASSERT_EQ(files.part_files.size(), 3u) << vae << texts;
      for (const auto& [part, from] : files.part_files) EXPECT_EQ(from.path, file) << part;
      EXPECT_EQ(files.open("text_encoder_2").tensors().size(),
                tensors_of(kModel / "text_encoder_2", "model").size());
    }
}

TEST_F(GivenFiles, OfATransformerAloneNameTheFlagsOfTheRest) {
  EXPECT_THAT(refusal({.model = transformer(), .components = bare()}),
              AllOf(HasSubstr("without all other parts"), HasSubstr("CLIP, T5, the autoencoder"),
                    HasSubstr("`text_encoder_files` clip_l.safetensors"),
                    HasSubstr("`vae_file` ae.safetensors"), HasSubstr("`components` DIR"),
                    HasSubstr("`comfy` DIR")));
  EXPECT_THAT(refusal({.model = transformer(),
                       .components = bare(),
                       .text_encoder_files = {kModel / "text_encoder/model.safetensors",
                                              kModel / "text_encoder_2/model.safetensors"}}),
              HasSubstr("missing: the autoencoder"));
  EXPECT_EQ(refusal({.model = transformer(), .components = kModel}), "");
  EXPECT_NO_THROW((void)find_model({.model = transformer(), .components = bare()},
                                   WeightsNeeded::kTransformer));
}

// ------------------------------------------------------------------- given for something else

TEST_F(GivenFiles, ForSomethingElseAreNamed) {
  const auto vae = kModel / "vae/diffusion_pytorch_model.safetensors";
  const auto clip = kModel / "text_encoder/model.safetensors";
  const auto lora = folder_ / "lora.safetensors";
  write_tensors(lora, {{"transformer.single_transformer_blocks.0.attn.to_q.lora_A.weight",
                        at::ones({1, 2})}});
  const auto as_model = [&](const fs::path& file) {
    return refusal({.model = file, .components = kModel});
  };
  EXPECT_THAT(as_model(lora),
              AllOf(HasSubstr("is a LoRA for a FLUX.1 or FLUX.3 model"), HasSubstr("`adapters`")));
  EXPECT_THAT(as_model(vae), AllOf(HasSubstr("an autoencoder"), HasSubstr("`vae_file`")));
  EXPECT_THAT(as_model(clip),
              AllOf(HasSubstr("a CLIP text encoder"), HasSubstr("`text_encoder_files`")));
  EXPECT_THAT(
      refusal({.model = kModel, .vae_file = transformer()}),
      AllOf(HasSubstr("is a FLUX.1 transformer, not an autoencoder"), HasSubstr("`model`")));
  EXPECT_THAT(refusal({.model = kModel, .text_encoder_files = {lora}}),
              AllOf(HasSubstr("not a text encoder"), HasSubstr("`adapters`")));
  EXPECT_THAT(refusal({.model = kModel, .adapters = {{.file = vae}}}),
              AllOf(HasSubstr("not a LoRA"), HasSubstr("`vae_file`")));
  EXPECT_THAT(refusal({.model = kModel, .controlnets = {vae}}), HasSubstr("not a ControlNet"));
  EXPECT_THAT(refusal({.model = kModel, .controlnets = {kModel}}),
              HasSubstr("the directory of a model, not of a ControlNet"));
  EXPECT_THAT(refusal({.model = kModel, .controlnets = {kModel / "vae"}}),
              AllOf(HasSubstr("an AutoencoderKL"), HasSubstr("`vae_file`")));
}

TEST_F(GivenFiles, OfAnotherModelsPartAreSaidToBeThat) {
  const auto qwen = kParity / "klein/model/text_encoder/model.safetensors";
  EXPECT_THAT(refusal({.model = kModel, .text_encoder_files = {qwen}}),
              AllOf(HasSubstr("Qwen3's kind"), HasSubstr("does not hold the weights")));
  EXPECT_THAT(refusal({.model = transformer(), .components = kParity / "klein/model"}),
              HasSubstr("is the transformer of a FluxPipeline"));
}

// ----------------------------------------------------------------------------- as folders

TEST_F(GivenFiles, MayBeFoldersOfTrainedParts) {
  const auto trained = folder_ / "out/checkpoint-500/transformer";
  copy_model(kModel / "transformer", trained);
  for (const auto& given : {trained, trained.parent_path()}) {
    const auto files = find_model({.model = given, .components = kModel}).files;
    EXPECT_EQ(files.folder, kModel);
    EXPECT_EQ(files.path_of("transformer"), trained);
    EXPECT_EQ(files.config_of("transformer"), trained / "config.json");
    EXPECT_FALSE(files.open("transformer").tensors().empty());
  }
  const auto files =
      find_model({.model = transformer(),
                  .components = bare(),
                  .text_encoder_files = {kModel / "text_encoder", kModel / "text_encoder_2"},
                  .vae_file = kModel / "vae"})
          .files;
  EXPECT_EQ(files.path_of("vae"), kModel / "vae");
  EXPECT_EQ(files.path_of("text_encoder_2"), kModel / "text_encoder_2");
}

TEST_F(GivenFiles, InTheirModelsDirectoryTakeItsParts) {
  copy_model(kModel, folder_ / "copy");
  const auto own = folder_ / "copy/transformer";
  for (const auto& given : {own, own / "diffusion_pytorch_model.safetensors"})
    EXPECT_EQ(find_model({.model = given}).files.folder, folder_ / "copy");
}

TEST_F(GivenFiles, MayBeTheFolderOfALora) {
  const auto lora = folder_ / "lora";
  write_tensors(lora / "pytorch_lora_weights.safetensors",
                {{"transformer.transformer_blocks.0.attn.to_q.lora_A.weight", at::ones({1, 2})}});
  write_tensors(lora / "other.safetensors", {{"a", at::ones({1})}});
  EXPECT_EQ(AdapterFile(lora).source(), (lora / "pytorch_lora_weights.safetensors").string());
  EXPECT_THAT(refusal({.model = lora}),
              AllOf(HasSubstr("folder of a LoRA"), HasSubstr("`adapters`")));
  fs::remove(lora / "pytorch_lora_weights.safetensors");
  write_tensors(lora / "step-2.safetensors", {{"a.lora_A.weight", at::ones({1, 2})}});
  EXPECT_THAT(message_of([&] { (void)AdapterFile(lora); }),
              HasSubstr("give one of them: other.safetensors, step-2.safetensors"));
}

TEST_F(GivenFiles, AloneInAFolderAreThatFolder) {
  EXPECT_EQ(with_paths({.model = transformer().parent_path(), .components = kModel}).model,
            transformer());
}

TEST_F(GivenFiles, SayWhichComponentsAreNotRead) {
  std::string told;
  const auto say = [](const std::string& choice) { ADD_FAILURE() << choice; };
  const auto warn = [&](const std::string& sentence) { told += sentence; };
  const auto components_beside = [&](const fs::path& model, const fs::path& components) {
    told.clear();
    return with_paths({.model = model, .components = components}, say, warn).components;
  };
  for (const auto& components : {kModel, fs::path("/nowhere"), fs::path("no/where")}) {
    EXPECT_EQ(components_beside(kModel, components), "");
    EXPECT_THAT(told, HasSubstr("`components` " + components.string() + " is not read"));
  }
  EXPECT_EQ(components_beside(transformer(), kModel), kModel);
  EXPECT_EQ(told, "");
  const auto missing = folder_ / "missing.safetensors";
  (void)components_beside(missing, kModel);
  EXPECT_EQ(told, "") << "nothing is known of its parts";
  EXPECT_THAT(refusal({.model = missing, .components = kModel}), HasSubstr("there is no model at"));
}

// -------------------------------------------------------------------------- Hugging Face's cache

class CachedFiles : public GivenFiles {
 protected:
  CachedFiles() {
    copy_model(kModel, snapshot());
    fs::create_directories(repository() / "refs");
    write_file(repository() / "refs/main", "0123456789");
    ::setenv("HF_HUB_CACHE", (folder_ / "hub").c_str(), 1);
  }
  ~CachedFiles() override { ::unsetenv("HF_HUB_CACHE"); }
  fs::path repository() const { return folder_ / "hub/models--someone--tiny"; }
  fs::path snapshot() const { return repository() / "snapshots/0123456789"; }
};

TEST_F(CachedFiles, HaveNames) {
  for (const std::string name : {"someone/tiny", "someone/tiny@main", "someone/tiny@01234567"})
    EXPECT_EQ(with_paths({.model = name}).model, snapshot()) << name;
  EXPECT_EQ(with_paths({.model = repository()}).model, snapshot());
  EXPECT_EQ(with_paths({.model = transformer(), .components = "someone/tiny"}).components,
            snapshot());
  EXPECT_THAT(refusal({.model = "someone/other"}),
              AllOf(HasSubstr("there is no model at someone/other"),
                    HasSubstr("braid pull someone/other"), HasSubstr((folder_ / "hub").string())));
  EXPECT_THAT(refusal({.model = "someone/tiny@v9"}), HasSubstr("no revision v9"));
}

TEST_F(CachedFiles, ComeAfterPathsAndComfysFiles) {
  const auto comfy = folder_ / "comfy/models";
  fs::create_directories(comfy / "loras/someone");
  write_tensors(comfy / "loras/someone/tiny.safetensors", {{"a.lora_A.weight", at::ones({1, 2})}});
  const auto found =
      with_paths({.model = "someone/tiny", .comfy = comfy, .adapters = {{.file = "someone/tiny"}}});
  EXPECT_EQ(found.model, snapshot()) << "not in the folders of models";
  EXPECT_EQ(found.adapters[0].file, comfy / "loras/someone/tiny.safetensors");
}

TEST_F(CachedFiles, MayBeASingleOne) {
  const auto other = folder_ / "hub/models--someone--file/snapshots/77";
  write_tensors(other / "flux.safetensors",
                tensors_of(kModel / "transformer", "diffusion_pytorch_model"));
  EXPECT_EQ(with_paths({.model = "someone/file", .components = kModel}).model,
            other / "flux.safetensors");
  EXPECT_EQ(with_paths({.model = "someone/file/flux.safetensors", .components = kModel}).model,
            other / "flux.safetensors");
  write_tensors(other / "two.safetensors", {{"a", at::ones({1})}});
  EXPECT_THAT(refusal({.model = "someone/file"}),
              AllOf(HasSubstr("no model_index.json"), HasSubstr("flux.safetensors, two.")));
}

// ------------------------------------------------------------------------------ ComfyUI's folder

TEST_F(GivenFiles, OfTheirUsualNamesComeBeforeLargerOnes) {
  const auto comfy = folder_ / "comfy/models";
  const auto put = [&](const std::string& name, const fs::path& folder, at::ScalarType dtype) {
    auto tensors =
        tensors_of(folder, folder.filename() == "vae" ? "diffusion_pytorch_model" : "model");
    for (auto& [_, tensor] : tensors) tensor = tensor.to(dtype);
    write_tensors(comfy / name, tensors);
  };
  fs::create_directories(comfy / "diffusion_models");
  fs::copy_file(transformer(), comfy / "diffusion_models/flux.safetensors");
  put("text_encoders/clip_l.safetensors", kModel / "text_encoder", at::kBFloat16);
  put("text_encoders/ViT-L-14-detail-improved.safetensors", kModel / "text_encoder", at::kDouble);
  put("text_encoders/t5xxl_fp16.safetensors", kModel / "text_encoder_2", at::kBFloat16);
  put("text_encoders/flan_t5_xxl.safetensors", kModel / "text_encoder_2", at::kDouble);
  put("vae/ae.sft", kModel / "vae", at::kBFloat16);
  put("vae/someVae.safetensors", kModel / "vae", at::kDouble);
  std::vector<std::string> said;
  const auto found =
      find_model({.model = "flux", .components = bare(), .comfy = comfy}, WeightsNeeded::kAll,
                 [&](const std::string& sentence) { said.push_back(sentence); })
          .options;
  EXPECT_EQ(found.text_encoder_files[0].filename(), "clip_l.safetensors");
  EXPECT_EQ(found.text_encoder_files[1].filename(), "t5xxl_fp16.safetensors");
  EXPECT_EQ(found.vae_file.filename(), "ae.sft");
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("CLIP: clip_l.safetensors is taken"),
                                      HasSubstr("ViT-L-14-detail-improved.safetensors fits, too"),
                                      HasSubstr("`text_encoder_files` chooses")),
                                HasSubstr("T5: t5xxl_fp16.safetensors is taken"),
                                AllOf(HasSubstr("the autoencoder: ae.sft"),
                                      HasSubstr("`vae_file` chooses"))));
}

// --------------------------------------------------------------------------- decoders' widths

// FLUX.2's small decoder goes with the usual encoder: all of the decoder's own channels are halved.
TEST_F(GivenFiles, OfASmallerDecoderBringItsWidths) {
  const auto klein = kParity / "klein/model";
  auto vae = tensors_of(klein / "vae", "diffusion_pytorch_model");
  for (auto& [name, tensor] : vae) {
    if (!name.starts_with("decoder.")) continue;
    const auto half = [&](std::int64_t dim) { return tensor.narrow(dim, 0, tensor.size(dim) / 2); };
    if (!name.starts_with("decoder.conv_out.")) tensor = half(0).contiguous();
    const bool has_inputs = tensor.dim() > 1 && !name.starts_with("decoder.conv_in.");
    if (has_inputs) tensor = half(1).contiguous();
  }
  const auto file = folder_ / "small.safetensors";
  write_tensors(file, vae);
  const auto widths = [&](const PipelineOptions& options) {
    return open_family(find_model(options).files)->description().vae.own_decoder_widths;
  };
  EXPECT_THAT(widths({.model = klein, .vae_file = file}), ElementsAre(2, 4, 4, 6));
  EXPECT_TRUE(widths({.model = klein}).empty());
  const auto comfy = folder_ / "comfy/models";
  fs::create_directories(comfy / "vae");
  fs::copy_file(file, comfy / "vae/small.safetensors");
  const auto lone = folder_ / "klein.safetensors";
  write_tensors(lone, tensors_of(klein / "transformer", "diffusion_pytorch_model"));
  copy_model(klein, folder_ / "bare-klein", Copied::kWithoutWeights);
  EXPECT_EQ(find_model({.model = lone,
                        .components = folder_ / "bare-klein",
                        .comfy = comfy,
                        .text_encoder_files = {klein / "text_encoder"}})
                .options.vae_file,
            comfy / "vae/small.safetensors");
}

// ------------------------------------------------------------------------- classes in JSON files

TEST_F(GivenFiles, MayNameAClassOfTheirOwn) {
  const auto model = folder_ / "copy";
  copy_model(kModel, model);
  const auto family = [&](const Json& name) {
    edit_json(model / "model_index.json", [&](Json& index) { index["_class_name"] = name; });
    return family_of_directory(model).pipeline_class;
  };
  EXPECT_EQ(family({"pipeline", "FluxPipeline"}), "FluxPipeline");
  EXPECT_EQ(custom_class_note(model), "");
  EXPECT_EQ(family({"pipeline", "FluxWithCFGPipeline"}), "FluxPipeline");
  EXPECT_THAT(custom_class_note(model),
              AllOf(HasSubstr("FluxWithCFGPipeline"), HasSubstr("taken as a FluxPipeline")));
  EXPECT_EQ(family("RFInversionFluxPipeline"), "FluxPipeline");
  EXPECT_EQ(family("FluxKontextEditPipeline"), "FluxKontextPipeline");
  EXPECT_EQ(family({"my_code", "MyPipeline"}), "FluxPipeline") << "by its transformer";
  for (const char* const other :
       {"StableDiffusionPipeline", "Flux9Pipeline", "FluxingPipeline", "MyPipeline"})
    EXPECT_THAT(message_of([&] { (void)family(other); }), HasSubstr(other));
  EXPECT_THAT(message_of([&] { (void)family(7); }), HasSubstr("should name a class"));
}

// diffusers takes the scheduler of model_index.json, whatever its config says.
TEST_F(GivenFiles, NameTheirScheduler) {
  const auto model = folder_ / "copy";
  copy_model(kModel, model);
  const auto refused = [&](const Json& in_index, const Json& in_config) {
    edit_json(model / "model_index.json", [&](Json& index) { index["scheduler"] = in_index; });
    edit_json(model / "scheduler/scheduler_config.json",
              [&](Json& config) { config["_class_name"] = in_config; });
    return message_of([&] { (void)read_scheduler(find_model({.model = model}).files); });
  };
  const std::string euler = "FlowMatchEulerDiscreteScheduler";
  EXPECT_EQ(refused({"diffusers", euler}, euler), "");
  EXPECT_EQ(refused({"diffusers", euler}, "DDIMScheduler"), "");
  EXPECT_EQ(refused({"scheduler_code", "My" + euler}, euler), "");
  EXPECT_EQ(refused({"diffusers", euler}, Json{"scheduler_code", euler}), "");
  EXPECT_THAT(refused({"diffusers", euler}, 7), HasSubstr("should name a class, it is 7"));
  EXPECT_THAT(refused({"diffusers", "FlowMatchHeunDiscreteScheduler"}, euler),
              HasSubstr("model_index.json asks for the scheduler FlowMatchHeunDiscreteScheduler"));
  EXPECT_THAT(refused({"diffusers", euler}, "Other"), HasSubstr("_config.json asks for the"));
}

TEST_F(GivenFiles, MayHaveTheConfigOfAWholeClip) {
  const auto model = folder_ / "copy";
  copy_model(kModel, model);
  edit_json(model / "text_encoder/config.json", [](Json& config) {
    config = {{"model_type", "clip"}, {"projection_dim", 512}, {"text_config", config}};
  });
  EXPECT_EQ(refusal({.model = model}), "");
  EXPECT_NO_THROW((void)open_family(find_model({.model = model}).files));
}

}  // namespace braid::given_files_test
