// Which files of a repository are downloaded.
#include "pipeline/files/needed_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "message_of.h"

namespace braid::needed_files_test {

using testing::ElementsAreArray;
using testing::HasSubstr;
using Files = std::map<std::string, std::string>;  // contents by path

std::vector<std::string> needed(const Files& files, const std::string& inside = "") {
  RepositoryFiles repository{.name = "org/name", .paths = {}, .text = [&](const std::string& path) {
                               return files.at(path);
                             }};
  for (const auto& [path, contents] : files) repository.paths.push_back(path);
  return needed_files(repository, inside);
}

std::string refusal(const Files& files, const std::string& inside = "") {
  return message_of([&] { needed(files, inside); });
}

// Published as FLUX.1-schnell is.
Files flux() {
  Files files;
  for (const char* const path : {".gitattributes",
                                 "README.md",
                                 "ae.safetensors",
                                 "flux1-schnell.safetensors",
                                 "scheduler/scheduler_config.json",
                                 "text_encoder/config.json",
                                 "text_encoder/model.safetensors",
                                 "text_encoder_2/config.json",
                                 "text_encoder_2/model-00001-of-00002.safetensors",
                                 "text_encoder_2/model-00002-of-00002.safetensors",
                                 "tokenizer/merges.txt",
                                 "tokenizer/special_tokens_map.json",
                                 "tokenizer/tokenizer_config.json",
                                 "tokenizer/vocab.json",
                                 "tokenizer_2/special_tokens_map.json",
                                 "tokenizer_2/spiece.model",
                                 "tokenizer_2/tokenizer.json",
                                 "tokenizer_2/tokenizer_config.json",
                                 "transformer/config.json",
                                 "transformer/diffusion_pytorch_model-00001-of-00002.safetensors",
                                 "transformer/diffusion_pytorch_model-00002-of-00002.safetensors",
                                 "vae/config.json",
                                 "vae/diffusion_pytorch_model.safetensors"})
    files[path] = "";
  files["model_index.json"] = R"({"_class_name": "FluxPipeline",
    "text_encoder": ["transformers", "CLIPTextModel"],
    "text_encoder_2": ["transformers", "T5EncoderModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "tokenizer_2": ["transformers", "T5TokenizerFast"],
    "transformer": ["diffusers", "FluxTransformer2DModel"],
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "vae": ["diffusers", "AutoencoderKL"]})";
  files["text_encoder_2/model.safetensors.index.json"] =
      R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
                         "b": "model-00002-of-00002.safetensors"}})";
  files["transformer/diffusion_pytorch_model.safetensors.index.json"] =
      R"({"weight_map": {"a": "diffusion_pytorch_model-00001-of-00002.safetensors",
                         "b": "diffusion_pytorch_model-00002-of-00002.safetensors"}})";
  return files;
}

// A modular pipeline: its index says where parts were loaded from, and names others than Braid
// needs.
TEST(NeededFiles, OfAModularDirectoryAreItsParts) {
  const auto entry = [](const char* part, const char* type) {
    return text_of("\"", part, "\": [\"library\", \"", type,
                   "\", {\"pretrained_model_name_or_path\": \"elsewhere/name\"}]");
  };
  Files files;
  for (const char* const path :
       {"scheduler/scheduler_config.json", "text_encoder/config.json",
        "text_encoder/model.safetensors", "tokenizer/tokenizer.json", "transformer/config.json",
        "transformer/diffusion_pytorch_model.safetensors", "vae/config.json",
        "vae/diffusion_pytorch_model.safetensors"})
    files[path] = "";
  const auto index = text_of("{\"_class_name\": \"Flux3ModularPipeline\", ",
                             entry("text_encoder", "Qwen3VLForConditionalGeneration"), ", ",
                             entry("tokenizer", "AutoProcessor"), ", ",
                             entry("transformer", "Flux3Transformer2DModel"), ", ",
                             entry("prompt_upsampler", "Qwen3_5ForConditionalGeneration"), ", ",
                             entry("vae", "AutoencoderKLFlux2"));
  files["modular_model_index.json"] = index + "}";
  auto wanted = files;
  wanted.erase("scheduler/scheduler_config.json");  // which the index does not name
  files["prompt_upsampler/config.json"] = files["prompt_upsampler/model.safetensors"] = "";
  std::vector<std::string> paths;
  for (const auto& [path, contents] : wanted) paths.push_back(path);
  EXPECT_THAT(needed(files), ElementsAreArray(paths));
  files["modular_model_index.json"] =
      index + ", " + entry("scheduler", "FlowMatchEulerDiscreteScheduler") + "}";
  paths.insert(paths.begin() + 1, "scheduler/scheduler_config.json");
  EXPECT_THAT(needed(files), ElementsAreArray(paths));
  files["guider/guider_config.json"] = "";
  EXPECT_THAT(needed(files), ElementsAreArray(paths));
  files["modular_model_index.json"] =
      text_of(index, ", ", entry("scheduler", "FlowMatchEulerDiscreteScheduler"), ", ",
              entry("guider", "ClassifierFreeGuidance"), "}");
  paths.insert(paths.begin(), "guider/guider_config.json");
  EXPECT_THAT(needed(files), ElementsAreArray(paths));
}

TEST(NeededFiles, OfAModelDirectoryAreItsParts) {
  auto expected = flux();
  for (const char* const other : {".gitattributes", "README.md", "ae.safetensors",
                                  "flux1-schnell.safetensors", "tokenizer_2/spiece.model"})
    expected.erase(other);
  std::vector<std::string> paths;
  for (const auto& [path, contents] : expected) paths.push_back(path);
  EXPECT_THAT(needed(flux()), ElementsAreArray(paths));
}

TEST(NeededFiles, TakeOneFormOfTheWeights) {
  auto files = flux();
  const auto plain = needed(files);
  for (const char* const other :
       {"vae/diffusion_pytorch_model.fp16.safetensors", "vae/diffusion_pytorch_model.bin",
        "text_encoder/pytorch_model.bin", "text_encoder/model.onnx",
        "transformer/diffusion_pytorch_model.safetensors", "safety_checker/model.safetensors"})
    files[other] = "";
  EXPECT_EQ(needed(files), plain);
  files.erase("vae/diffusion_pytorch_model.safetensors");
  EXPECT_THAT(needed(files), testing::Contains("vae/diffusion_pytorch_model.fp16.safetensors"));
}

TEST(NeededFiles, OfOnePartAreItsConfigurationAndWeights) {
  EXPECT_THAT(needed({{"config.json", ""},
                      {"diffusion_pytorch_model.safetensors", ""},
                      {"README.md", ""},
                      {"images/a.png", ""}}),
              ElementsAreArray({"config.json", "diffusion_pytorch_model.safetensors"}));
  EXPECT_THAT(needed({{"pytorch_lora_weights.safetensors", ""}, {"other.safetensors", ""}}),
              ElementsAreArray({"pytorch_lora_weights.safetensors"}));
  EXPECT_THAT(needed({{"adapter_config.json", ""}, {"adapter_model.safetensors", ""}}),
              ElementsAreArray({"adapter_config.json", "adapter_model.safetensors"}));
  EXPECT_THAT(needed({{"model_index.json", R"({"_class_name": "FluxPriorReduxPipeline"})"},
                      {"feature_extractor/preprocessor_config.json", ""},
                      {"flux1-redux-dev.safetensors", ""},
                      {"image_embedder/config.json", ""},
                      {"image_embedder/diffusion_pytorch_model.safetensors", ""},
                      {"image_encoder/config.json", ""},
                      {"image_encoder/model.safetensors", ""}})
                  .size(),
              6u);
}

TEST(NeededFiles, OfSeveralOneHasToBeNamed) {
  const Files quants = {{"README.md", ""}, {"a-Q4.gguf", ""}, {"b/c-Q8.gguf", ""}};
  EXPECT_THAT(refusal(quants), HasSubstr("2 files of weights, one of which has to be named"));
  EXPECT_THAT(needed(quants, "b/c-Q8.gguf"), ElementsAreArray({"b/c-Q8.gguf"}));
  EXPECT_THAT(refusal(quants, "d.gguf"), HasSubstr("org/name has no d.gguf; its files of weights "
                                                   "are: a-Q4.gguf, b/c-Q8.gguf"));
  EXPECT_THAT(refusal({{"config.json", ""}, {"a.gguf", ""}, {"b.gguf", ""}}),
              HasSubstr("one of which has to be named"));
  EXPECT_THAT(needed({{"README.md", ""}, {"lora/ink.safetensors", ""}}),
              ElementsAreArray({"lora/ink.safetensors"}));
}

TEST(NeededFiles, AreThoseOfAFolderThatIsNamed) {
  EXPECT_THAT(needed(flux(), "vae/"),
              ElementsAreArray({"vae/config.json", "vae/diffusion_pytorch_model.safetensors"}));
  EXPECT_EQ(needed(flux(), "transformer").size(), 4u);
}

// It has alpha, without which the changes would be added at another scale.
TEST(NeededFiles, OfOneFileComeWithItsConfiguration) {
  const Files files = {{"README.md", ""},
                       {"config.json", ""},
                       {"a/adapter_config.json", ""},
                       {"a/adapter_model.safetensors", ""},
                       {"a/other.txt", ""},
                       {"net/config.json", ""},
                       {"net/control.safetensors", ""},
                       {"net/tokenizer.json", ""}};
  EXPECT_THAT(needed(files, "a/adapter_model.safetensors"),
              ElementsAreArray({"a/adapter_config.json", "a/adapter_model.safetensors"}));
  EXPECT_THAT(needed(files, "net/control.safetensors"),
              ElementsAreArray({"net/config.json", "net/control.safetensors"}));
  EXPECT_THAT(needed(files, "a/other.txt"), ElementsAreArray({"a/other.txt"}));
  EXPECT_THAT(needed({{"adapter_config.json", ""}, {"adapter_model.safetensors", ""}},
                     "adapter_model.safetensors"),
              ElementsAreArray({"adapter_config.json", "adapter_model.safetensors"}));
  EXPECT_THAT(needed({{"a/adapter_config.json", ""}, {"a/adapter_model.safetensors", ""}}),
              ElementsAreArray({"a/adapter_config.json", "a/adapter_model.safetensors"}));
}

TEST(NeededFiles, OfAFolderAreThoseThatItIsGivenFor) {
  const Files files = {{"ink/README.md", ""},       {"ink/adapter_config.json", ""},
                       {"ink/ink.safetensors", ""}, {"ink/older/ink.safetensors", ""},
                       {"quants/a.gguf", ""},       {"quants/b.gguf", ""},
                       {"notes/a.txt", ""},         {"model.safetensors", ""}};
  for (const char* const folder : {"ink", "ink/"})
    EXPECT_THAT(needed(files, folder),
                ElementsAreArray({"ink/adapter_config.json", "ink/ink.safetensors"}));
  EXPECT_THAT(needed(files, "ink/older"), ElementsAreArray({"ink/older/ink.safetensors"}));
  EXPECT_THAT(refusal(files, "quants"),
              HasSubstr("org/name/quants has 2 files of weights, one of which has to be named, as "
                        "in org/name/quants/a.gguf: quants/a.gguf, quants/b.gguf"));
  EXPECT_THAT(refusal(files, "notes"),
              HasSubstr("org/name/notes is not the folder of a part or model"));
}

TEST(NeededFiles, OfAModelDirectoryInAFolderAreThoseOfTheModel) {
  auto files = flux();
  files["generation_config.json"] = "";
  std::vector<std::string> expected;
  for (const auto& path : needed(files)) expected.push_back("models/schnell/" + path);
  Files deeper = {{"model.safetensors", ""}, {"vae/config.json", ""}};
  for (const auto& [path, contents] : files) deeper["models/schnell/" + path] = contents;
  EXPECT_THAT(needed(deeper, "models/schnell"), ElementsAreArray(expected));
  deeper.erase("models/schnell/vae/config.json");
  deeper.erase("models/schnell/vae/diffusion_pytorch_model.safetensors");
  EXPECT_THAT(refusal(deeper, "models/schnell"),
              HasSubstr("org/name has no folder models/schnell/vae"));
}

// `-m` takes such a folder, too: a trainer's checkpoint.
TEST(NeededFiles, OfATrainedTransformerAreThoseOfItsFolder) {
  const auto whole = flux();
  Files files = {{"README.md", ""}, {"run/optimizer.bin", ""}, {"run/scaler.safetensors", ""}};
  std::vector<std::string> expected, at_root;
  for (const auto& [path, contents] : whole)
    if (path.starts_with("transformer/")) {
      files["run/" + path] = contents;
      expected.push_back("run/" + path);
      at_root.push_back(path);
    }
  EXPECT_THAT(needed(files, "run"), ElementsAreArray(expected));
  Files bare = {{"README.md", ""}};
  for (const auto& path : at_root) bare[path] = whole.at(path);
  EXPECT_THAT(needed(bare), ElementsAreArray(at_root));
  files["run/vae/config.json"] = "";
  EXPECT_THAT(needed(files, "run"), ElementsAreArray({"run/scaler.safetensors"}))
      << "a model without its index";
}

TEST(NeededFiles, AreRefusedWhereBraidRunsNoSuchModel) {
  auto files = flux();
  files.erase("vae/diffusion_pytorch_model.safetensors");
  EXPECT_THAT(refusal(files), HasSubstr("org/name/vae has no weights that Braid reads"));
  files.erase("vae/config.json");
  EXPECT_THAT(refusal(files), HasSubstr("org/name has no folder vae"));
  files = flux();
  files.erase("transformer/diffusion_pytorch_model-00002-of-00002.safetensors");
  EXPECT_THAT(refusal(files), HasSubstr("-00002-of-00002.safetensors, which org/name does not"));
  EXPECT_THAT(refusal({{"model_index.json", R"({"_class_name": "SanaPipeline"})"}}),
              HasSubstr("org/name/model_index.json should describe a FluxPipeline"));
  EXPECT_THAT(refusal({{"model_index.json", "<html>"}}), HasSubstr("org/name/model_index.json"));
  EXPECT_THAT(refusal({{"README.md", ""}, {"model.bin", ""}}), HasSubstr("has no weights"));
}

}  // namespace braid::needed_files_test
