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
inline std::map<std::string, Tensor> made_tensors(const ToyConfig& config, int seed = 7) {
  std::vector<AskedTensor> asked;
  (void)Toy(config, Weights::synthetic({}).surveyed(asked));
  at::manual_seed(std::uint64_t(seed));
  std::map<std::string, Tensor> tensors;
  for (const auto& a : asked) {
    const auto layer = a.layer == "image_in" ? "embed.image" : a.layer;
    const auto scale = a.shape.size() > 1 ? 1 / std::sqrt(double(a.shape.back())) : 0.3;
    tensors[layer + "." + a.name] = at::randn(a.shape) * scale + (a.shape.size() > 1 ? 0 : 0.5);
  }
  return tensors;
}

// Denoisers, and links to the rest.
class MadeToy {
 public:
  explicit MadeToy(const ToyConfig& config = {}) {
    link_the_rest();
    make_denoiser("transformer", config, 7);
    write_index("ToyPipeline");
  }
  const std::filesystem::path& model() const { return folder_.path(); }

 protected:
  // With two denoisers.
  MadeToy(const std::string& pipeline, const std::string& more_of_index) {
    link_the_rest();
    make_denoiser("transformer", {}, 7);
    make_denoiser("transformer_2", {}, 8);
    write_index(pipeline, more_of_index);
  }

 private:
  void link_the_rest() {
    const std::filesystem::path demo = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
    const std::pair<const char*, const char*> links[] = {{"text_encoder_2", "text_encoder"},
                                                         {"tokenizer_2", "tokenizer"},
                                                         {"vae", "vae"},
                                                         {"scheduler", "scheduler"}};
    for (const auto& [from, to] : links) {
      std::filesystem::create_directory_symlink(demo / from, model() / to);
      index_ += std::string(", \"") + to + R"(": ["made", "Made"])";
    }
  }
  void make_denoiser(const std::string& folder, const ToyConfig& config, int seed) {
    std::filesystem::create_directory(model() / folder);
    write_file(model() / folder / "config.json", "{}");
    write_file(model() / folder / "diffusion_pytorch_model.safetensors",
               write_safetensors(made_tensors(config, seed)));
    index_ += ", \"" + folder + R"(": ["toy", "Toy"])";
  }
  void write_index(const std::string& pipeline, const std::string& more = "") const {
    write_file(model() / "model_index.json",
               R"({"_class_name": ")" + pipeline + "\"" + index_ + more + "}");
  }

  TemporaryFolder folder_;
  std::string index_;
};

// The model with two denoisers: the second one takes over below this noise level.
class MadeToyExperts : public MadeToy {
 public:
  explicit MadeToyExperts(double boundary)
      : MadeToy("ToyExpertsPipeline", ", \"boundary_ratio\": " + std::to_string(boundary)) {}
};

// The model with a second denoiser for the negative prompt.
class MadeToyTwins : public MadeToy {
 public:
  MadeToyTwins() : MadeToy("ToyTwinsPipeline", "") {}
};

}  // namespace braid::toy
