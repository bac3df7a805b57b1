#include "pipeline/files/model_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "models/kinds/file_kind.h"
#include "pipeline/families/family.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/request/limits.h"
#include "pipeline/sampling/named_sampling.h"
#include "weights/files/denoiser_prefixes.h"
#include "weights/files/folder_files.h"
#include "weights/files/whole_checkpoint.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDenoiserStem = "diffusion_pytorch_model";

bool is_denoiser_of(const FamilyEntry& entry, const Checkpoint& denoiser) {
  return std::ranges::any_of(entry.single_file_has, [&](const std::string& name) {
    return std::ranges::any_of(kComfyPrefixes,
                               [&](const char* prefix) { return denoiser.find(prefix + name); });
  });
}

// Rejects a single file known to belong to another family.
void check_single_file(const fs::path& file, const FamilyEntry& family) {
  const auto denoiser = denoiser_in(open_weights(file, kDenoiserStem));
  if (is_denoiser_of(family, denoiser)) return;
  for (const auto& other : known_families())
    require(!is_denoiser_of(other, denoiser), file.string(), " is the transformer of a ",
            other.pipeline_class, ", the other parts are a ", family.pipeline_class, "'s");
}

FileRole role_of(const Part& part) {
  return part.role == Part::Role::kText ? FileRole::kTextEncoder : FileRole::kAutoencoder;
}

// Says what the file is, if it is something else than what it was given for.
void require_fitting_kind(const fs::path& path, FileRole wanted, const std::string& reasons) {
  auto kind = kind_of_folder(path);
  if (kind.role == FileRole::kUnknown)
    kind = kind_of_file(
        open_weights(path, wanted == FileRole::kTextEncoder ? "model" : kDenoiserStem));
  const bool is_other = kind.role != FileRole::kUnknown && kind.role != wanted;
  require(!is_other, misuse_of_file(path.string(), kind, wanted));
  const auto what = kind.name.empty() ? "" : ", " + kind.name + ",";
  throw InputError(
      text_of(path.string(), what,
              " does not hold the weights that it was given for: ", reasons.substr(2)));
}

}  // namespace

PartSearch find_part_in(const fs::path& path, const Part& part, const ModelFiles& files) {
  auto search = find_part(path, part);
  if (search.found || part.role != Part::Role::kDecoder) return search;
  const auto file = open_weights(path, stem_of(part.folder));
  for (const auto& prefix : parts_in(file)) try {
      auto with_file = files;
      with_file.part_files[part.folder] = {.path = path, .prefix = prefix};
      with_file.opened = std::make_shared<CheckpointShelf>();  // files that do not fit are closed
      const auto own = file.part(prefix);
      const auto family = open_family(with_file);
      const auto& decoder = family->part(Part::Role::kDecoder);
      decoder.make(Weights(own, decoder.names(own), {}).unread());
      return {.found = PartFile{.path = path, .prefix = prefix}};
    } catch (const InputError&) {
      // the first search has said why not
    }
  return search;
}

namespace {

// Finds out which of the parts the file holds.
void place(const fs::path& path, const std::vector<const Part*>& parts, ModelFiles& files) {
  std::string reasons;
  bool is_placed = false;
  for (const auto* part : parts) {
    const auto [found, why_not] = find_part_in(path, *part, files);
    if (found) {
      const auto& placed = files.part_files.emplace(part->folder, *found);
      require(placed.second, "both ", placed.first->second.path.string(), " and ", path.string(),
              " are the weights of ", part->label);
      is_placed = true;
    }
    reasons += text_of("; not of ", part->label, ", for ", why_not);
  }
  if (!is_placed) require_fitting_kind(path, role_of(*parts.front()), reasons);
}

bool is_single(const fs::path& model) {
  return is_file(model) || kind_of_folder(model).role == FileRole::kModel;
}

ModelFiles find_denoisers(const PipelineOptions& options) {
  if (!is_single(options.model)) {
    const auto& family = family_of_whole_directory(options.model);
    return {.folder = options.model, .single_file = {}, .family = &family};
  }
  require_denoiser(options.model);
  require(!options.components.empty(), options.model.string(), " is a single file: ",
          "the directory of the text encoders, tokenizers, autoencoder and scheduler ",
          "is needed too, as its components (`components`)");
  const auto& family = family_of_directory(options.components);
  require(family.denoisers.size() == 1, options.model.string(), " is one transformer, but a ",
          family.pipeline_class, " has ", family.denoisers.size(),
          ": give the directory that holds all of them");
  check_single_file(options.model, family);
  return {.folder = options.components, .single_file = options.model, .family = &family};
}

// Says what the file is, if it is something else.
void require_adapter(const fs::path& path) {
  const auto file = adapter_in(path);
  const auto kind = kind_of_file(Checkpoint::open_file(file));
  const bool is_other = kind.role != FileRole::kUnknown && kind.role != FileRole::kAdapter;
  require(!is_other, misuse_of_file(file.string(), kind, FileRole::kAdapter));
}

void check_controlnet(const fs::path& folder) {
  require(is_there(folder), "there is no directory of a ControlNet at ", folder.string());
  if (is_file(folder)) {
    const auto kind = kind_of_file(Checkpoint::open_file(folder));
    require(kind.role == FileRole::kControlNet || kind.role == FileRole::kUnknown,
            misuse_of_file(folder.string(), kind, FileRole::kControlNet));
    throw InputError(text_of(folder.string(), " is ",
                             kind.name.empty() ? "a single file" : kind.name + " in a single file",
                             ": Braid takes the directory of a ControlNet, with its config.json"));
  }
  const auto kind = kind_of_folder(folder);
  require(kind.role == FileRole::kControlNet || kind.role == FileRole::kUnknown,
          misuse_of_file(folder.string(), kind, FileRole::kControlNet));
  require(!is_model_directory(folder), folder.string(),
          " is the directory of a model, not of a ControlNet: give it as the model (`model`)");
  require(is_there(folder / "config.json"), folder.string(),
          " is not the directory of a ControlNet: it has no config.json");
}

void add_controlnets(ModelFiles& files, const std::vector<fs::path>& folders) {
  require(folders.empty() || files.family->takes_controlnets, "a ", files.family->pipeline_class,
          " takes no ControlNets");
  for (const auto& folder : folders) check_controlnet(folder);
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

Checkpoint open_weights(const fs::path& path, const std::string& stem) {
  return is_folder(path) ? Checkpoint::open(path, stem) : Checkpoint::open_file(path);
}

void require_denoiser(const fs::path& path) {
  const auto file = open_weights(path, kDenoiserStem);
  const auto kind = kind_of_file(file);
  if (kind.role == FileRole::kModel && !kind.family.empty()) return;
  const auto denoiser = denoiser_in(file);
  const auto& families = known_families();
  // A ControlNet has the embedders of its model.
  const bool is_other = kind.role == FileRole::kModel || kind.role == FileRole::kControlNet;
  const bool is_known =
      !is_other && std::any_of(families.begin(), families.end(),
                               [&](const auto& entry) { return is_denoiser_of(entry, denoiser); });
  if (is_known) return;
  const bool is_unknown = kind.role == FileRole::kUnknown;
  const auto& tensors = file.tensors();
  const auto names = is_unknown && !tensors.empty()
                         ? text_of(": its ", tensors.size(), " tensors are named like '",
                                   tensors.begin()->first, "'")
                         : "";
  throw InputError(misuse_of_file(path.string(), kind, FileRole::kModel) + names);
}

PartSearch find_part(const fs::path& file, const Part& part) {
  const auto opened = open_weights(file, stem_of(part.folder));
  const bool is_denoiser = part.role == Part::Role::kDenoiser;
  const auto checkpoint = is_denoiser ? denoiser_in(opened) : opened;
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

bool ModelFiles::is_in_single_file(const std::string& part) const {
  return !single_file.empty() && family && is_denoiser(*family, part);
}

// A trained part that is a folder has its own.
fs::path ModelFiles::config_of(const std::string& part) const {
  const auto own = path_of(part) / "config.json";
  const bool is_own = path_of(part) != folder_of(part) && is_folder(path_of(part));
  return is_own && is_there(own) ? own : folder_of(part) / "config.json";
}

fs::path ModelFiles::path_of(const std::string& part) const {
  if (is_in_single_file(part)) return single_file;
  const auto file = part_files.find(part);
  return file != part_files.end() ? file->second.path : folder_of(part);
}

Checkpoint ModelFiles::open(const std::string& part) const {
  if (is_in_single_file(part)) return denoiser_in(opened->open_any(single_file, kDenoiserStem));
  const auto file = part_files.find(part);
  if (file == part_files.end()) return opened->open(folder_of(part), stem_of(part));
  return opened->open_any(file->second.path, stem_of(part)).part(file->second.prefix);
}

bool ModelFiles::has_weights(const std::string& part) const {
  if (is_in_single_file(part)) return true;
  return part_files.contains(part) || !find_weights(folder_of(part), stem_of(part)).is_empty();
}

ModelFiles placed_files(const PipelineOptions& options) {
  auto files = find_denoisers(options);
  add_controlnets(files, options.controlnets);
  add_redux(files, options.redux);
  for (const auto& adapter : options.adapters) require_adapter(adapter.file);
  files.adapters = open_adapters(options.adapters);
  place_parts(options.text_encoder_files, options.vae_file, files);
  return files;
}

void place_parts(const std::vector<fs::path>& text_encoders, const fs::path& vae,
                 ModelFiles& files) {
  if (text_encoders.empty() && vae.empty()) return;
  const auto family = open_family(files);
  for (const auto& file : text_encoders) place(file, family->text_parts(), files);
  if (!vae.empty()) place(vae, {&family->part(Part::Role::kDecoder)}, files);
}

ScheduleConfig read_scheduler(const ModelFiles& files) {
  const auto path = files.folder / "scheduler" / "scheduler_config.json";
  auto json = read_json(path);
  // The class that model_index.json names is the one that diffusers makes of any scheduler's
  // config.
  const auto named = class_of_part(files.folder, "scheduler");
  const std::string usual = "Scheduler";
  const bool is_scheduler =
      json.is_object() && JsonObject(json, path.string()).class_name_or(usual).ends_with(usual);
  if (named.find(usual) != named.npos && is_scheduler) {
    require_known_scheduler(named, index_of(files.folder).string());
    json["_class_name"] = named;
  }
  return read_schedule_config(json, path.string());
}

namespace {

// `named` wins over `d`. Who names a list and no number of steps means as many as it has levels.
void take_named(const NamedSampling& named, RequestDefaults& d) {
  d.steps = named.steps.value_or(d.steps_without_list());
  d.sampling = joined_sampling(named.sampling, d.sampling);
  if (named.steps || lists_levels(named.sampling)) d.stated_steps = named.steps;
  if (lists_levels(d.sampling))
    d.steps = settle_sampling({}, d.sampling, {}, d.steps, {}, [](const std::string&) {}).steps;
}

// Reads only the noise levels of the pipeline's index: its other names are those of classes.
NamedSampling sampling_of_index(const std::filesystem::path& path) {
  if (!is_there(path)) return {};
  const auto index = read_json(path);
  const auto it = index.find("sample_sigmas");
  if (it == index.end() || it->empty()) return {};
  return read_named_sampling({{"sample_sigmas", *it}}, path.string());
}

RequestDefaults defaults_of_files(const ModelFiles& files, const RequestDefaults& published) {
  auto d = published;
  const auto path = files.folder / "generation_config.json";
  auto named = sampling_of_index(index_of(files.folder));
  if (is_there(path)) {
    const auto json = read_json(path);
    const JsonObject config(json, path.string());
    named = joined_sampling(named, read_named_sampling(json, path.string()));
    d.width = int(config.integer_or("width", d.width, 1, kMaxSide));
    d.height = int(config.integer_or("height", d.height, 1, kMaxSide));
    d.frames = int(config.integer_or("num_frames", d.frames, 1, kMostFrames));
    d.steps = int(config.integer_or("num_inference_steps", d.steps, 1, kMostSteps));
    d.guidance = config.number_or("guidance_scale", d.guidance);
    d.max_sequence_length =
        int(config.integer_or("max_sequence_length", d.max_sequence_length, 1, kLongestTextTokens));
  }
  take_named(named, d);
  return d;
}

}  // namespace

RequestDefaults read_defaults(const ModelFiles& files, const RequestDefaults& published) {
  const auto defaults = defaults_of_files(files, published);
  if (files.adapters.empty()) return defaults;
  return defaults_with(files.adapters, defaults);
}

// An adapter that was distilled for certain steps wins over the model's files.
RequestDefaults defaults_with(const std::vector<AppliedAdapter>& adapters,
                              const RequestDefaults& loaded) {
  auto d = loaded.without_adapters ? *loaded.without_adapters : loaded;
  auto of_files = std::make_shared<const RequestDefaults>(d);
  take_named(sampling_of_adapters(adapters), d);
  d.without_adapters = std::move(of_files);
  return d;
}

}  // namespace braid
