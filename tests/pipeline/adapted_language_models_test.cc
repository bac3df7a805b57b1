// LoRAs for the language models that encode prompts equal merged weights, under every name.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::adapted_language_models_test {

namespace fs = std::filesystem;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";

double largest_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

// Adapters of a language model, whose merged weights are in a copy of the pipeline.
class AdaptedModel {
 public:
  static constexpr const char* kLayer = "layers.0.mlp.down_proj";

  explicit AdaptedModel(fs::path stored) : kStored(std::move(stored)) {
    fs::copy(kStored, merged_, fs::copy_options::recursive);
    std::map<std::string, Tensor> tensors;
    const auto checkpoint = Checkpoint::open(kStored / "text_encoder", "model");
    for (const auto& [name, stored] : checkpoint.tensors()) tensors[name] = stored.view().clone();
    for (auto& [name, weight] : tensors) {
      if (name.find(kLayer) == std::string::npos) continue;
      down_ = at::randn({2, weight.size(1)}), up_ = at::randn({weight.size(0), 2});
      weight = weight.to(at::kFloat) + at::matmul(up_, down_);
    }
    write_file(merged_ / "text_encoder/model.safetensors", write_safetensors(tensors));
  }
  std::vector<Adapter> adapter(const std::string& module) const {
    const auto path = folder_ / "adapter.safetensors";
    write_file(path, write_safetensors(
                         {{module + ".lora_A.weight", down_}, {module + ".lora_B.weight", up_}}));
    return {{.file = path}};
  }
  static Tensor embeds(PipelineOptions options) {
    options.dtype = Dtype::kFloat32;
    return Engine(options, {})
        .generate({.prompts = {"a star"},
                   .width = 64,
                   .height = 48,
                   .steps = 1,
                   .max_sequence_length = 64},
                  {}, {.record = RecordTensors::kYes})
        .facts.recording.at("prompt_embeds");
  }

  const fs::path kStored;

 protected:
  TemporaryFolder folder_;
  const fs::path merged_ = folder_ / "merged";

 private:
  Tensor down_, up_;
};

class AdaptedLanguageModels : public AdaptedModel, public testing::TestWithParam<std::string> {
 protected:
  AdaptedLanguageModels() : AdaptedModel(kParity / GetParam() / "model") {}
};

class AdaptedJoy : public AdaptedModel, public testing::Test {
 protected:
  AdaptedJoy() : AdaptedModel(kParity / "joy/model") {}
};

TEST_P(AdaptedLanguageModels, EqualMergedOnes) {
  const std::string layer = kLayer;
  const auto want = embeds({.model = merged_});
  EXPECT_GT(largest_error(embeds({.model = kStored}), want), 0.01);
  for (const auto& module :
       {"text_encoder.model." + layer, "text_encoder." + layer,
        "text_encoder.base_model.model.model." + layer,
        "text_encoder.model.language_model." + layer, "text_encoder.language_model.model." + layer,
        std::string("lora_te_model_layers_0_mlp_down_proj"),
        std::string("lora_te1_layers_0_mlp_down_proj"),
        "text_encoders.qwen3_4b.transformer.model." + layer,
        "text_encoders.qwen25_7b.transformer.model." + layer,
        "text_encoders.mistral3_24b.transformer.model." + layer}) {
    const PipelineOptions options{.model = kStored, .adapters = adapter(module)};
    EXPECT_LT(largest_error(embeds(options), want), 1e-5) << module;
  }
}

TEST_P(AdaptedLanguageModels, AreSharedOutAndWrittenAsTheyAreFused) {
  PipelineOptions options{.model = kStored,
                          .adapters = adapter(std::string("text_encoder.model.") + kLayer)};
  const auto want = embeds({.model = merged_});
  const auto out = folder_ / "written";
  convert({.model = kStored, .adapters = options.adapters, .out = out, .dtype = Dtype::kFloat32});
  EXPECT_LT(largest_error(embeds({.model = out}), want), 1e-5) << "written";
  options.layout = {.tp = 2, .text = TextRanks::kShared};
  for (const auto mode : {AdapterMode::kFused, AdapterMode::kUnmerged}) {
    options.adapter_mode = mode;
    EXPECT_LT(largest_error(embeds(options), want), 2e-5) << int(mode);
  }
}

// The language model within one that also sees.
class SlowAdaptedJoy : public AdaptedJoy {};

TEST_F(SlowAdaptedJoy, EqualsAMergedOne) {
  const std::string layer = kLayer;
  const auto want = embeds({.model = merged_});
  EXPECT_GT(largest_error(embeds({.model = kStored}), want), 0.01);
  for (const auto& module :
       {"text_encoder.model.language_model." + layer, "text_encoder.language_model." + layer,
        "text_encoder.base_model.model.model.language_model." + layer,
        std::string("lora_te_model_language_model_layers_0_mlp_down_proj")}) {
    const PipelineOptions options{.model = kStored, .adapters = adapter(module)};
    EXPECT_LT(largest_error(embeds(options), want), 1e-5) << module;
  }
}

const auto kNameOf = [](const auto& info) {
  auto name = info.param;
  std::erase(name, '-');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Families, AdaptedLanguageModels, testing::Values("klein"), kNameOf);
INSTANTIATE_TEST_SUITE_P(SlowFamilies, AdaptedLanguageModels,
                         testing::Values("zimage-turbo", "flux2-dev"), kNameOf);

}  // namespace braid::adapted_language_models_test
