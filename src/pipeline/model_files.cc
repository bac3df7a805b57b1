#include "pipeline/model_files.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

const char* const kParts[] = {"text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2",
                              "vae",          "scheduler"};

void check_part(const JsonObject& index, const fs::path& folder, const std::string& part) {
  require(index.has(part), index.source(), " has no '", part, "'");
  const auto& entry = index.at(part);
  const bool is_there = entry.is_array() && entry.size() == 2 && entry[1].is_string();
  require(is_there, index.source(), " should name the class of '", part, "', it says ",
          entry.dump());
  require(fs::is_directory(folder / part), "the folder ", (folder / part).string(),
          ", which model_index.json names, is missing");
}

void check_folder(const fs::path& folder, bool with_transformer) {
  const auto path = folder / "model_index.json";
  require(fs::exists(folder), "there is no model at ", folder.string());
  require(fs::is_directory(folder), folder.string(), " should be a model directory");
  require(fs::exists(path), folder.string(), " is no model directory: it has no model_index.json");
  const auto json = read_json(path);
  const JsonObject index(json, path.string());
  const auto class_name = index.string("_class_name");
  require(class_name == "FluxPipeline", path.string(), " should describe a FluxPipeline, ",
          "it describes a ", class_name);
  for (const auto* part : kParts) check_part(index, folder, part);
  if (with_transformer) check_part(index, folder, "transformer");
}

}  // namespace

fs::path ModelFiles::config_of(const std::string& part) const {
  return folder / part / "config.json";
}

Checkpoint ModelFiles::open_transformer() const {
  if (!single_file.empty()) return Checkpoint::open_file(single_file);
  return Checkpoint::open(folder / "transformer", "diffusion_pytorch_model");
}

Checkpoint ModelFiles::open_text_encoder(const std::string& part) const {
  return Checkpoint::open(folder / part, "model");
}

Checkpoint ModelFiles::open_vae() const {
  return Checkpoint::open(folder / "vae", "diffusion_pytorch_model");
}

ModelFiles find_model(const PipelineOptions& options) {
  if (!fs::is_regular_file(options.model)) {
    check_folder(options.model, /*with_transformer=*/true);
    return {.folder = options.model, .single_file = {}};
  }
  require(!options.components.empty(), options.model.string(), " is a single file: ",
          "the directory of the text encoders, tokenizers, autoencoder and scheduler ",
          "is needed too (--components DIR)");
  check_folder(options.components, /*with_transformer=*/false);
  return {.folder = options.components, .single_file = options.model};
}

ModelDefaults read_defaults(const ModelFiles& files, bool guidance_embeds) {
  ModelDefaults d;
  if (!guidance_embeds) d = {.steps = 4, .guidance = 0, .max_sequence_length = 256};
  const auto path = files.folder / "generation_config.json";
  if (!fs::exists(path)) return d;
  const auto json = read_json(path);
  const JsonObject config(json, path.string());
  d.width = int(config.integer_or("width", d.width, 1, 1 << 14));
  d.height = int(config.integer_or("height", d.height, 1, 1 << 14));
  d.steps = int(config.integer_or("num_inference_steps", d.steps, 1, 10'000));
  d.guidance = config.number_or("guidance_scale", d.guidance);
  d.max_sequence_length =
      int(config.integer_or("max_sequence_length", d.max_sequence_length, 1, 512));
  return d;
}

}  // namespace braid
