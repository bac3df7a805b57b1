// A toy model on the disk, gone after the test: random weights, and the bundled model's tokenizer,
// text encoder, autoencoder and scheduler.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "model.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::toy {

// Every tensor that the transformer asks for, away from any neutral value.
inline std::map<std::string, Tensor> made_tensors(const ToyConfig& config) {
  std::vector<SurveyedTensor> asked;
  (void)Toy(config, Weights::synthetic({}).surveyed(asked));
  at::manual_seed(7);
  std::map<std::string, Tensor> tensors;
  for (const auto& a : asked) {
    const auto layer = a.layer == "image_in" ? "embed.image" : a.layer;
    const auto scale = a.shape.size() > 1 ? 1 / std::sqrt(double(a.shape.back())) : 0.3;
    tensors[layer + "." + a.name] = at::randn(a.shape) * scale + (a.shape.size() > 1 ? 0 : 0.5);
  }
  return tensors;
}

class MadeToy {
 public:
  explicit MadeToy(const ToyConfig& config = {}) {
    namespace fs = std::filesystem;
    const fs::path demo = fs::path(BRAID_SOURCE_DIR) / "models/demo";
    const std::pair<const char*, const char*> links[] = {{"text_encoder_2", "text_encoder"},
                                                         {"tokenizer_2", "tokenizer"},
                                                         {"vae", "vae"},
                                                         {"scheduler", "scheduler"}};
    std::string index = R"({"_class_name": "ToyPipeline", "transformer": ["toy", "Toy"])";
    for (const auto& [from, to] : links) {
      fs::create_directory_symlink(demo / from, model() / to);
      index += std::string(", \"") + to + R"(": ["made", "Made"])";
    }
    fs::create_directory(model() / "transformer");
    write_file(model() / "model_index.json", index + "}");
    write_file(model() / "transformer/config.json", "{}");
    write_file(model() / "transformer/diffusion_pytorch_model.safetensors",
               write_safetensors(made_tensors(config)));
  }
  const std::filesystem::path& model() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace braid::toy
