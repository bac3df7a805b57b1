#include "pipeline/files/model_folder.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/json.h"
#include "pipeline/families/family.h"
#include "pipeline/families/known_names.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexFile = "model_index.json";

// A class of the directory's own code is [module, class].
std::string class_in(const Json& json, const std::string& what) {
  const bool is_own =
      json.is_array() && !json.empty() &&
      std::all_of(json.begin(), json.end(), [](const auto& x) { return x.is_string(); });
  require(json.is_string() || is_own, what, " should name a class, it is ", json.dump());
  return is_own ? json.back().get<std::string>() : json.get<std::string>();
}

void check_part(const JsonObject& index, const fs::path& folder, const std::string& part) {
  require(index.has(part), index.source(), " has no '", part, "'");
  const auto& entry = index.at(part);
  const bool is_named = entry.is_array() && entry.size() >= 2 && entry[1].is_string();
  const bool is_whole =
      is_named && (entry.size() == 2 || (entry.size() == 3 && entry[2].is_object()));
  require(is_whole, index.source(), " should name the class of '", part, "', it says ",
          entry.dump());
  require(is_folder(folder / part), "the folder ", (folder / part).string(), ", which ",
          index_of(folder).filename().string(), " names, is missing");
}

std::string without_ending(const std::string& name, const std::string& ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

// Whether `name` has the words of `known` ("FluxFill" of FluxFillPipeline), not followed by more
// letters of a word or by the number of a version.
bool is_named_after(const std::string& name, const std::string& known) {
  const auto words = without_ending(known, "Pipeline");
  const auto at = name.find(words);
  if (at == name.npos) return false;
  const auto end = at + words.size();
  return end == name.size() || std::isupper(static_cast<unsigned char>(name[end]));
}

bool has_all_parts(const JsonObject& index, const FamilyEntry& entry) {
  return std::all_of(entry.folders.begin(), entry.folders.end(),
                     [&](const std::string& part) { return index.has(part); });
}

struct Match {
  const FamilyEntry* entry = nullptr;
  bool is_exact = true;
};

Match exact_match(const std::string& name) {
  for (const auto& entry : known_families()) {
    const auto& kin = entry.kin_classes;
    const bool is_kin = std::find(kin.begin(), kin.end(), name) != kin.end();
    if (entry.pipeline_class == name || is_kin) return {&entry};
  }
  return {};
}

bool has_its_denoisers(const JsonObject& index, const FamilyEntry& entry) {
  return has_all_parts(index, entry) &&
         std::all_of(entry.denoisers.begin(), entry.denoisers.end(), [&](const auto& folder) {
           return class_in(index.at(folder), index.source()) == entry.transformer_class;
         });
}

// The longest of the known classes that the name has in it; else, for code of the directory's own,
// the first family with its denoisers.
Match similar_match(const std::string& name, const JsonObject& index) {
  Match best;
  if (is_other_pipeline(name)) return best;
  std::size_t longest = 0;
  const auto offer = [&](const FamilyEntry& entry, const std::string& known) {
    if (known.size() <= longest || !is_named_after(name, known) || !has_all_parts(index, entry))
      return;
    longest = known.size();
    best = {&entry, false};
  };
  for (const auto& entry : known_families()) {
    offer(entry, entry.pipeline_class);
    for (const auto& kin : entry.kin_classes) offer(entry, kin);
  }
  if (best.entry || !index.at("_class_name").is_array()) return best;
  for (const auto& entry : known_families())
    if (has_its_denoisers(index, entry)) return {&entry, false};
  return {};
}

Match match_of(const JsonObject& index) {
  const auto name = class_in(index.at("_class_name"), index.source() + ": '_class_name'");
  if (const auto exact = exact_match(name); exact.entry) return exact;
  if (const auto similar = similar_match(name, index); similar.entry) return similar;
  std::string known;
  for (const auto& entry : known_families())
    known += (known.empty() ? "" : ", ") + entry.pipeline_class;
  throw InputError(
      text_of(index.source(), " should describe a ", known, ", it describes a ", name));
}

// The class of a part's own config.json: diffusers' field, or the first of transformers'.
std::string class_in_config(const fs::path& config) {
  const auto json = read_json_object(config);
  if (json.has("_class_name")) return class_in(json.at("_class_name"), json.source());
  const auto classes = json.strings_or("architectures", {});
  return classes.empty() ? "" : classes.front();
}

std::string advice_for(const fs::path& folder) {
  const auto unfinished = is_there(folder) ? fs::path() : unfinished_download(folder);
  if (!unfinished.empty())
    return text_of(", but ", unfinished.string(), " is, a download that was not completed");
  return "";
}

// A folder without a model_index.json: what it has instead.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  const auto kind = kind_of_folder(folder);
  if (kind.role != FileRole::kUnknown)
    throw InputError(misuse_of_file(folder.string(), kind, FileRole::kModel));
  const auto files = weights_lying_in(folder);
  std::string list;
  for (const auto& file : files) list += (list.empty() ? "" : ", ") + file.filename().string();
  throw InputError(text_of(
      folder.string(), " is not a model directory: it has no model_index.json",
      list.empty() ? std::string()
                   : "; it has files of weights, one of which may be given as `model`: " + list));
}

// The family of a model directory, which has to have the parts for which `is_needed` holds.
template <class IsNeeded>
const FamilyEntry& family_with(const fs::path& folder, IsNeeded is_needed) {
  require(is_there(folder), "there is no model at ", folder.string(), advice_for(folder));
  require(!fs::is_fifo(folder), folder.string(), " is a pipe: models are read from files");
  require(is_folder(folder), folder.string(), " should be a model directory");
  if (!is_model_directory(folder)) refuse_folder(folder);
  const auto index = read_json_object(index_of(folder));
  const auto& family = family_of_index(index);
  for (const auto& part : family.folders)
    if (is_needed(family, part)) check_part(index, folder, part);
  return family;
}

}  // namespace

fs::path index_of(const fs::path& folder) {
  const bool is_modular = !is_there(folder / kIndexFile) && is_there(folder / kModularIndex);
  return folder / (is_modular ? kModularIndex : kIndexFile);
}

bool is_model_directory(const fs::path& folder) {
  return is_folder(folder) && is_there(index_of(folder));
}

const FamilyEntry& family_of_index(const JsonObject& index) { return *match_of(index).entry; }

const FamilyEntry& family_of_directory(const fs::path& folder) {
  return family_with(folder, [](const FamilyEntry& family, const std::string& part) {
    return !is_denoiser(family, part);
  });
}

const FamilyEntry& family_of_whole_directory(const fs::path& folder) {
  return family_with(folder, [](const FamilyEntry&, const std::string&) { return true; });
}

std::string custom_class_note(const fs::path& folder) {
  const auto index = read_json_object(index_of(folder));
  const auto match = match_of(index);
  if (match.is_exact) return "";
  return text_of(index.source(), " describes a ", class_in(index.at("_class_name"), ""),
                 ", whose own code Braid does not run: it is taken as a ",
                 match.entry->pipeline_class);
}

FileKind kind_of_folder(const fs::path& folder) {
  if (!is_folder(folder) || is_model_directory(folder)) return {};
  for (const char* const name :
       {"pytorch_lora_weights.safetensors", "adapter_model.safetensors", "adapter_config.json"})
    if (is_there(folder / name)) return {FileRole::kAdapter, "the folder of a LoRA"};
  const auto config = folder / "config.json";
  if (!is_there(config)) return {};
  const auto name = class_in_config(config);
  for (const auto& entry : known_families())
    if (!entry.transformer_class.empty() && entry.transformer_class == name)
      return {FileRole::kModel, "a " + name, name};
  return kind_of_class(name);
}

std::string class_of_part(const fs::path& folder, const std::string& part) {
  const auto path = index_of(folder);
  if (!is_there(path)) return "";
  const auto index = read_json_object(path);
  if (!index.has(part)) return "";
  auto entry = index.at(part);
  if (entry.is_array() && entry.size() == 3 && entry[2].is_object()) entry.erase(2);
  return class_in(entry, index.source() + ": '" + part + "'");
}

}  // namespace braid
