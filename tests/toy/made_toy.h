// A toy model on the disk, gone after the test: random weights, and the bundled model's tokenizer,
// text encoder, autoencoder and scheduler.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "model.h"
#include "temporary_folder.h"
#include "weights/files/checkpoint.h"
#include "weights/files/safetensors_writer.h"

namespace braid::toy {

// Every tensor that a transformer asks for, away from any neutral value.
template <class Network, class Config>
std::map<std::string, Tensor> made_tensors(const Config& config, int seed = 7) {
  std::vector<SurveyedTensor> asked;
  (void)Network(config, Weights::synthetic({}).surveyed(asked));
  at::manual_seed(std::uint64_t(seed));
  std::map<std::string, Tensor> tensors;
  for (const auto& a : asked) {
    const auto layer = a.layer == "image_in" ? "embed.image" : a.layer;
    const auto scale = a.shape.size() > 1 ? 1 / std::sqrt(double(a.shape.back())) : 0.3;
    tensors[layer + "." + a.name] = at::randn(a.shape) * scale + (a.shape.size() > 1 ? 0 : 0.5);
  }
  return tensors;
}

// The bundled autoencoder with a fourth channel, for which random weights are made.
inline void write_autoencoder_with_alpha(const std::filesystem::path& demo,
                                         const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  auto config = read_file(demo / "config.json");
  for (const std::string name : {"\"in_channels\": ", "\"out_channels\": "})
    config.replace(config.find(name), name.size() + 1, name + "4");
  write_file(folder / "config.json", config);
  at::manual_seed(8);
  const auto with_one_more = [](const Tensor& x, std::int64_t dim) {
    return at::cat({x, at::randn_like(x.narrow(dim, 0, 1)) * 0.1}, dim).contiguous();
  };
  const auto whole = Checkpoint::open(demo, "diffusion_pytorch_model");
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, stored] : whole.tensors()) {
    const auto x = stored.view().clone();
    const bool is_out = name.starts_with("decoder.conv_out.");
    tensors[name] = name == "encoder.conv_in.weight" ? with_one_more(x, 1)
                    : is_out                         ? with_one_more(x, 0)
                                                     : x;
  }
  write_file(folder / "diffusion_pytorch_model.safetensors", write_safetensors(tensors));
}

// Denoisers, and links to the rest.
class MadeToy {
 public:
  explicit MadeToy(const ToyConfig& config = {})
      : MadeToy("ToyPipeline", made_tensors<Toy>(config)) {}
  enum class Alpha { kNo, kYes };
  MadeToy(const std::string& pipeline, const std::map<std::string, Tensor>& transformer,
          Alpha alpha = Alpha::kNo) {
    link_the_rest(alpha);
    write_denoiser("transformer", transformer);
    write_index(pipeline);
  }
  const std::filesystem::path& model() const { return folder_.path(); }

 protected:
  // Writes two denoisers.
  MadeToy(const std::string& pipeline, const std::string& more_of_index) {
    link_the_rest(Alpha::kNo);
    write_denoiser("transformer", made_tensors<Toy>(ToyConfig(), 7));
    write_denoiser("transformer_2", made_tensors<Toy>(ToyConfig(), 8));
    write_index(pipeline, more_of_index);
  }

 private:
  void link_the_rest(Alpha alpha) {
    namespace fs = std::filesystem;
    const fs::path demo = fs::path(BRAID_SOURCE_DIR) / "models/demo";
    const std::pair<const char*, const char*> links[] = {{"text_encoder_2", "text_encoder"},
                                                         {"tokenizer_2", "tokenizer"},
                                                         {"vae", "vae"},
                                                         {"scheduler", "scheduler"}};
    for (const auto& [from, to] : links) {
      if (to == std::string("vae") && alpha == Alpha::kYes)
        write_autoencoder_with_alpha(demo / from, model() / to);
      else
        fs::create_directory_symlink(demo / from, model() / to);
      index_ += std::string(", \"") + to + R"(": ["made", "Made"])";
    }
  }
  void write_denoiser(const std::string& folder, const std::map<std::string, Tensor>& tensors) {
    std::filesystem::create_directory(model() / folder);
    write_file(model() / folder / "config.json", "{}");
    write_file(model() / folder / "diffusion_pytorch_model.safetensors",
               write_safetensors(tensors));
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
