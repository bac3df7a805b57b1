#include "pipeline/files/model_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"
#include "weights/files/whole_checkpoint.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTransformer = "transformer";

void check_part(const JsonObject& index, const fs::path& folder, const std::string& part) {
  require(index.has(part), index.source(), " has no '", part, "'");
  const auto& entry = index.at(part);
  const bool is_there = entry.is_array() && entry.size() == 2 && entry[1].is_string();
  require(is_there, index.source(), " should name the class of '", part, "', it says ",
          entry.dump());
  require(is_folder(folder / part), "the folder ", (folder / part).string(),
          ", which model_index.json names, is missing");
}

const FamilyEntry& family_of_class(const std::string& class_name, const fs::path& index) {
  std::string known;
  for (const auto& entry : known_families()) {
    const auto& kin = entry.kin_classes;
    const bool is_kin = std::find(kin.begin(), kin.end(), class_name) != kin.end();
    if (entry.pipeline_class == class_name || is_kin) return entry;
    known += (known.empty() ? "" : ", ") + entry.pipeline_class;
  }
  throw InputError(
      text_of(index.string(), " should describe a ", known, ", it describes a ", class_name));
}

enum class Transformer { kInFolder, kElsewhere };

const FamilyEntry& check_folder(const fs::path& folder, Transformer transformer) {
  const auto path = folder / "model_index.json";
  require(is_there(folder), "there is no model at ", folder.string());
  require(is_folder(folder), folder.string(), " should be a model directory");
  require(is_there(path), folder.string(), " is not a model directory: it has no model_index.json");
  const auto json = read_json(path);
  const JsonObject index(json, path.string());
  const auto& family = family_of_class(index.string("_class_name"), path);
  for (const auto& part : family.folders)
    if (part != kTransformer || transformer == Transformer::kInFolder)
      check_part(index, folder, part);
  return family;
}

// Rejects a single file known to belong to another family.
void check_single_file(const fs::path& file, const FamilyEntry& family) {
  const auto checkpoint = Checkpoint::open_file(file);
  const auto has = [&](const std::string& name) {
    return checkpoint.find(name) || checkpoint.find("model.diffusion_model." + name) ||
           checkpoint.find("diffusion_model." + name);
  };
  const auto is_of = [&](const FamilyEntry& entry) {
    return std::any_of(entry.single_file_has.begin(), entry.single_file_has.end(), has);
  };
  if (is_of(family)) return;
  for (const auto& other : known_families())
    require(!is_of(other), file.string(), " is the transformer of a ", other.pipeline_class,
            ", the other parts are a ", family.pipeline_class, "'s");
}

// Finds out which of the parts the file holds.
void place(const fs::path& path, const std::vector<const Part*>& parts,
           std::map<std::string, PartFile>& part_files) {
  std::string reasons;
  bool is_placed = false;
  for (const auto* part : parts) {
    const auto [found, why_not] = find_part(path, *part);
    if (found) {
      const bool is_new = part_files.emplace(part->folder, *found).second;
      require(is_new, "both ", part_files.at(part->folder).path.string(), " and ", path.string(),
              " are the weights of ", part->label);
      is_placed = true;
    }
    reasons += text_of(reasons.empty() ? "" : "; ", "not of ", part->label, ", for ", why_not);
  }
  require(is_placed, path.string(), " does not hold the weights that it was given for: ", reasons);
}

ModelFiles find_transformer(const PipelineOptions& options) {
  if (!is_file(options.model)) {
    const auto& family = check_folder(options.model, Transformer::kInFolder);
    return {.folder = options.model, .single_file = {}, .family = &family};
  }
  require(!options.components.empty(), options.model.string(), " is a single file: ",
          "the directory of the text encoders, tokenizers, autoencoder and scheduler ",
          "is needed too, as its components");
  const auto& family = check_folder(options.components, Transformer::kElsewhere);
  check_single_file(options.model, family);
  return {.folder = options.components, .single_file = options.model, .family = &family};
}

void add_controlnets(ModelFiles& files, const std::vector<fs::path>& folders) {
  require(folders.empty() || files.family->takes_controlnets, "a ", files.family->pipeline_class,
          " takes no ControlNets");
  for (const auto& folder : folders) {
    require(is_folder(folder), "there is no directory of a ControlNet at ", folder.string());
    require(is_there(folder / "config.json"), folder.string(),
            " is not the directory of a ControlNet: it has no config.json");
  }
  files.controlnets = folders;
}

void add_redux(ModelFiles& files, const fs::path& folder) {
  if (folder.empty()) return;
  require(files.family->takes_redux, "a ", files.family->pipeline_class, " takes no Redux");
  require(is_folder(folder), "there is no directory of Redux at ", folder.string());
  files.redux = folder;
  for (const auto* part : {kReduxEncoder, kReduxEmbedder})
    require(is_there(files.config_of(part)), folder.string(),
            " is not the directory of Redux: it has no ",
            (fs::path(part).filename() / "config.json").string());
}

}  // namespace

PartSearch find_part(const fs::path& file, const Part& part) {
  const auto checkpoint = Checkpoint::open_file(file);
  std::string why_not;
  for (const auto& prefix : parts_in(checkpoint)) try {
      const auto own = checkpoint.part(prefix);
      part.make(Weights(own, part.names(own), {}).unread());
      return {.found = PartFile{.path = file, .prefix = prefix}};
    } catch (const InputError& error) {
      why_not = error.what();
    }
  return {.found = std::nullopt, .why_not = why_not};
}

const FamilyEntry& family_in(const fs::path& folder) {
  return check_folder(folder, Transformer::kElsewhere);
}

const char* stem_of(const std::string& part) {
  return part.starts_with("text_encoder") || part == kReduxEncoder ? "model"
                                                                   : "diffusion_pytorch_model";
}

std::string controlnet_part(std::size_t number) {
  return "controlnet_" + std::to_string(number + 1);
}

fs::path ModelFiles::folder_of(const std::string& part) const {
  for (std::size_t i = 0; i < controlnets.size(); ++i)
    if (part == controlnet_part(i)) return controlnets[i];
  if (part == kReduxEncoder || part == kReduxEmbedder) return redux / fs::path(part).filename();
  return folder / part;
}

fs::path ModelFiles::config_of(const std::string& part) const {
  return folder_of(part) / "config.json";
}

fs::path ModelFiles::path_of(const std::string& part) const {
  if (part == kTransformer && !single_file.empty()) return single_file;
  const auto file = part_files.find(part);
  return file != part_files.end() ? file->second.path : folder_of(part);
}

Checkpoint ModelFiles::open(const std::string& part) const {
  if (part == kTransformer && !single_file.empty())
    return denoiser_in(opened->open_file(single_file));
  const auto file = part_files.find(part);
  if (file == part_files.end()) return opened->open(folder_of(part), stem_of(part));
  return opened->open_file(file->second.path).part(file->second.prefix);
}

ModelFiles find_model(const PipelineOptions& given) {
  const auto options = with_files_found(given);
  auto files = find_transformer(options);
  add_controlnets(files, options.controlnets);
  add_redux(files, options.redux);
  files.adapters = open_adapters(options.adapters);
  if (options.text_encoder_files.empty() && options.vae_file.empty()) return files;
  const auto family = open_family(files);
  for (const auto& file : options.text_encoder_files)
    place(file, family->text_parts(), files.part_files);
  if (!options.vae_file.empty())
    place(options.vae_file, {&family->part(Part::Role::kDecoder)}, files.part_files);
  return files;
}

ScheduleConfig read_scheduler(const ModelFiles& files) {
  const auto path = files.folder / "scheduler" / "scheduler_config.json";
  return read_schedule_config(read_json(path), path.string());
}

RequestDefaults read_defaults(const ModelFiles& files, const RequestDefaults& published) {
  auto d = published;
  const auto path = files.folder / "generation_config.json";
  if (!is_there(path)) return d;
  const auto json = read_json(path);
  const JsonObject config(json, path.string());
  d.width = int(config.integer_or("width", d.width, 1, 1 << 14));
  d.height = int(config.integer_or("height", d.height, 1, 1 << 14));
  d.steps = int(config.integer_or("num_inference_steps", d.steps, 1, 10'000));
  d.guidance = config.number_or("guidance_scale", d.guidance);
  d.max_sequence_length =
      int(config.integer_or("max_sequence_length", d.max_sequence_length, 1, kMostTextTokens));
  return d;
}

}  // namespace braid
