#include "pipeline/files/needed_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "pipeline/families/family.h"
#include "pipeline/families/known_names.h"
#include "pipeline/files/model_folder.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// What is needed beside a part's weights: the files of its configuration, a scheduler, a guider, a
// processor of pictures and a tokenizer.
constexpr std::array kSmallFiles = {
    "config.json",         "quantization_config.json", "scheduler_config.json",
    "adapter_config.json", "preprocessor_config.json", "processor_config.json",
    "tokenizer.json",      "tokenizer_config.json",    "special_tokens_map.json",
    "added_tokens.json",   "chat_template.jinja",      "guider_config.json"};
// Read only where there is no tokenizer.json.
constexpr std::array kOlderTokenizers = {"vocab.json", "merges.txt", "spiece.model"};

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

class NeededFiles {
 public:
  explicit NeededFiles(const RepositoryFiles& repository)
      : repository_(repository), all_(repository.paths.begin(), repository.paths.end()) {}

  std::vector<std::string> found() const { return {needed_.begin(), needed_.end()}; }

  // False if the folder is no model directory; the repository itself is "".
  bool add_model(const std::string& root) {
    const auto plain = joined(root, "model_index.json"), modular = joined(root, kModularIndex);
    if (!has(plain) && !has(modular)) return false;
    const auto name = has(plain) ? plain : modular;
    const auto source = joined(repository_.name, name);
    const auto json = parse_json(repository_.text(name), source);
    const JsonObject index(json, source);
    needed_.insert(name);
    add_if_there(joined(root, "generation_config.json"));
    for (const auto& part : folders_of(index)) {
      const auto folder = joined(root, part);
      require(!names_in(folder).empty(), repository_.name, " has no folder ", folder, ", which a ",
              index.at("_class_name").dump(), " needs");
      add_folder(folder);
    }
    for (const auto& part : optional_folders_of(index))
      if (!names_in(joined(root, part)).empty()) add_folder(joined(root, part));
    return true;
  }

  // False if it is neither the folder of a part nor that of an adapter.
  bool add_part(const std::string& folder) {
    const auto names = names_in(folder);
    const auto has_name = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const char* const stem : {"pytorch_lora_weights", "adapter_model"})
      if (has_name((std::string(stem) + ".safetensors").c_str())) return add_weights(folder, stem);
    return has_name("config.json") && add_folder(folder);
  }

  // What a trainer saves: a denoiser in its folder, without the other parts. False if it is not.
  bool add_trained_denoiser(const std::string& root) {
    for (const char* const other : {"vae", "scheduler"})
      if (!names_in(joined(root, other)).empty()) return false;
    for (const auto& part : denoiser_folders())
      if (has(joined(joined(root, part), "config.json"))) return add_folder(joined(root, part));
    return false;
  }

  void add_only_weights() {
    std::vector<std::string> weights;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(weights),
                 [](const std::string& path) { return is_weights_name(path); });
    require(!weights.empty(), repository_.name,
            " has no weights that Braid reads (.safetensors or .gguf)");
    add_only(weights, repository_.name);
  }

  void add_inside(std::string inside) {
    while (inside.ends_with('/')) inside.pop_back();
    if (has(inside)) {
      add_file(inside);
      if (inside.ends_with(".json")) add_shards(inside);
      return;
    }
    if (!add_model(inside) && !add_part(inside) && !add_trained_denoiser(inside))
      add_only_weights_of(inside);
  }

 private:
  bool has(const std::string& path) const { return all_.contains(path); }

  // A folder that is no part: what `--lora` and `-m` take of it.
  void add_only_weights_of(const std::string& folder) {
    std::vector<std::string> weights;
    for (const auto& path : all_)
      if (is_weights_name(path)) weights.push_back(path);
    require(!names_in(folder).empty(), repository_.name, " has no ", folder,
            "; its files of weights are: ", list_of(weights));
    std::erase_if(weights, [&](const std::string& path) { return folder_of(path) != folder; });
    const auto where = joined(repository_.name, folder);
    require(!weights.empty(), where,
            " is not the folder of a part or model: it has no config.json, no model_index.json "
            "and no weights that Braid reads");
    add_only(weights, where);
  }

  void add_only(const std::vector<std::string>& weights, const std::string& where) {
    require(weights.size() == 1, where, " has ", weights.size(),
            " files of weights, one of which has to be named, as in ",
            joined(repository_.name, weights.front()), ": ", list_of(weights));
    add_file(weights.front());
  }

  // The file beside a LoRA's weights has its alpha, the one beside a ControlNet's its shape.
  void add_file(const std::string& path) {
    needed_.insert(path);
    if (!is_weights_name(path)) return;
    for (const char* const name : {"adapter_config.json", "config.json"})
      add_if_there(joined(folder_of(path), name));
  }

  std::vector<std::string> folders_of(const JsonObject& index) const {
    const auto& name = index.at("_class_name");
    if (name.is_string() && is_redux_pipeline(name.get<std::string>()))
      return {"image_encoder", "image_embedder", "feature_extractor"};
    return family_of_index(index).folders;
  }

  static std::vector<std::string> optional_folders_of(const JsonObject& index) {
    const auto& name = index.at("_class_name");
    if (name.is_string() && is_redux_pipeline(name.get<std::string>())) return {};
    auto folders = family_of_index(index).optional_folders;
    std::erase_if(folders, [&](const std::string& folder) { return !index.has(folder); });
    return folders;
  }

  std::vector<std::string> names_in(const std::string& folder) const {
    const auto beginning = folder.empty() ? "" : folder + "/";
    std::vector<std::string> names;
    for (const auto& path : all_)
      if (path.starts_with(beginning) && path.find('/', beginning.size()) == path.npos)
        names.push_back(path.substr(beginning.size()));
    return names;
  }

  // Adds a folder, with its weights if it has a configuration of a network. False if those are
  // missing.
  bool add_folder(const std::string& folder) {
    for (const auto* const name : kSmallFiles) add_if_there(joined(folder, name));
    if (!has(joined(folder, "tokenizer.json")))
      for (const auto* const name : kOlderTokenizers) add_if_there(joined(folder, name));
    if (!has(joined(folder, "config.json"))) return true;
    const auto part = fs::path(folder).filename().string();
    if (part.starts_with("tokenizer") || part == "processor" || part == "scheduler") return true;
    return add_weights(folder, stem_in(folder));
  }

  // A single file and shards may lie side by side: as Checkpoint::open() chooses.
  bool add_weights(const std::string& folder, const std::string& stem) {
    const auto where = joined(repository_.name, folder);
    const auto names = names_in(folder);
    const auto index = joined(folder, stem + ".safetensors.index.json");
    if (stem == "diffusion_pytorch_model" && has(index)) return add_shards(index);
    const auto found = find_weights(names, stem, where);
    if (found.is_empty() && folder.empty()) return false;  // several, say, beside a config.json
    require(!found.is_empty(), where, " has no weights that Braid reads: ", list_of(names));
    if (!found.index.empty()) return add_shards(joined(folder, found.index.string()));
    for (const auto& file : found.files) needed_.insert(joined(folder, file.string()));
    if (has(joined(folder, "adapter_config.json")))
      needed_.insert(joined(folder, "adapter_config.json"));
    return true;
  }

  bool add_shards(const std::string& index) {
    needed_.insert(index);
    const auto source = joined(repository_.name, index);
    const auto json = parse_json(repository_.text(index), source);
    const auto folder = folder_of(index);
    const auto weights = json.is_object() ? json.find("weight_map") : json.end();
    if (!json.is_object() || weights == json.end() || !weights->is_object()) return true;
    for (const auto& [tensor, shard] : weights->items()) {
      require(shard.is_string(), source, ": '", tensor, "' should name a file, it is ",
              shard.dump());
      const auto path = joined(folder, shard.get<std::string>());
      require(has(path), source, " names the shard ", path, ", which ", repository_.name,
              " does not have");
      needed_.insert(path);
    }
    return true;
  }

  std::string stem_in(const std::string& folder) const {
    const auto names = names_in(folder);
    const bool is_of_diffusers = std::any_of(names.begin(), names.end(), [](const auto& name) {
      return name.starts_with("diffusion_pytorch_model");
    });
    return is_of_diffusers ? "diffusion_pytorch_model" : "model";
  }

  void add_if_there(const std::string& path) {
    if (has(path)) needed_.insert(path);
  }

  static std::string list_of(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 20;
    std::string list;
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
      list += (i == 0 ? "" : ", ") + names[i];
    return list.empty() ? "none" : list + (names.size() > kMost ? ", ..." : "");
  }

  const RepositoryFiles& repository_;
  std::set<std::string> all_, needed_;
};

}  // namespace

std::vector<std::string> needed_files(const RepositoryFiles& repository,
                                      const std::string& inside) {
  NeededFiles needed(repository);
  if (!inside.empty()) {
    needed.add_inside(inside);
  } else if (!needed.add_model("") && !needed.add_part("") && !needed.add_trained_denoiser("")) {
    needed.add_only_weights();
  }
  return needed.found();
}

}  // namespace braid
