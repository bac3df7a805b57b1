#include "weights/adapters/adapter_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"
#include "base/hub_cache.h"
#include "weights/files/denoiser_prefixes.h"
#include "weights/files/folder_files.h"
#include "weights/files/gguf_header.h"
#include "weights/files/scaled_weights.h"

namespace braid {

const StoredTensor* AdapterModule::find(AdapterRole role) const {
  const auto it = tensors.find(role);
  return it == tensors.end() ? nullptr : &it->second;
}

namespace {

std::filesystem::path found(const std::filesystem::path& name) {
  require(!name.empty(), "an adapter has an empty name");
  if (is_there(name)) return snapshot_of(name);
  if (const auto path = found_in_hub(name); !path.empty()) return path;
  throw InputError(text_of("there is no adapter at ", name.string(), not_in_hub(name)));
}

// Scales of codes are no tensors of their own: one that is left has none of its codes beside it.
void refuse_lone_scale(const StoredByName& tensors, const std::string& name,
                       const std::string& source) {
  for (const std::string ending : {".weight_scale", ".scale_weight", ".weight_scale_inv"}) {
    if (!name.ends_with(ending)) continue;
    const auto weight = name.substr(0, name.size() - ending.size()) + ".weight";
    const auto it = tensors.find(weight);
    throw InputError(text_of(source, ": tensor '", name, "' should be the scale of codes in '",
                             weight, "', which ", it == tensors.end() ? "is not there" : "holds ",
                             it == tensors.end() ? "" : element_type_name(it->second.entry.type)));
  }
}

std::filesystem::path config_beside(const std::filesystem::path& file) {
  return file.parent_path() / "adapter_config.json";
}

constexpr std::array kUsualNames = {"pytorch_lora_weights.safetensors",
                                    "adapter_model.safetensors"};
constexpr const char* kApplied = "it applies LoRA, DoRA, LoHa, LoKr and differences";

// peft has kinds whose tensors are named like no part of a LoRA.
std::string why_no_adapter(const std::filesystem::path& file, std::size_t tensors) {
  const auto config = config_beside(file);
  const auto type =
      is_there(config) ? foreign_peft_type(read_file(config), config.string()) : std::string();
  if (type.empty()) return text_of("none of its ", tensors, " tensors is named like a part of one");
  return text_of("it is of peft's kind ", type, ", as its adapter_config.json says, which Braid ",
                 "cannot apply: ", kApplied);
}

// peft saves an adapter with a name of its own in a folder of that name. Returns a clause; empty if
// no folder here is one.
std::string adapters_below(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : entries_in(folder, unreadable))
    for (const auto* const usual : kUsualNames)
      if (is_there(entry.path() / usual)) names.insert(entry.path().filename().string());
  if (names.empty()) return "";
  const auto& first = *names.begin();
  return names.size() == 1 ? "its folder " + first + " has one"
                           : text_of(names.size(), " of its folders have one, such as ", first);
}

// Factors whose module has no alpha of its own: the first that peft may have written, and the first
// that it cannot have. Empty: there is none.
struct ScaledByOthers {
  std::string of_peft = {}, not_of_peft = {};
};

bool is_of_peft(const std::string& tensor) {
  for (const std::string_view prefix : kComfyPrefixes)
    if (!prefix.empty() && tensor.starts_with(prefix)) return false;
  for (const auto* const prefix : {"lora_", "lycoris_", "dit.", "pipe.dit."})
    if (tensor.starts_with(prefix)) return false;
  for (const auto* const word : {"lora_down", "lora_up", "lora.down", "lora.up", "_layer.down.",
                                 "_layer.up.", ".processor."})
    if (tensor.find(word) != tensor.npos) return false;
  return true;
}

ScaledByOthers scaled_by_others(const std::map<std::string, AdapterModule>& modules) {
  using Role = AdapterRole;
  ScaledByOthers scaled;
  for (const auto& [name, module] : modules)
    for (const auto role : {Role::kDown, Role::kFirstDown, Role::kLeft, Role::kLeftDown}) {
      const auto* const factor = module.find(Role::kAlpha) ? nullptr : module.find(role);
      if (!factor) continue;
      auto& first = is_of_peft(factor->entry.name) ? scaled.of_peft : scaled.not_of_peft;
      if (first.empty()) first = factor->entry.name;
    }
  return scaled;
}

}  // namespace

std::filesystem::path adapter_in(const std::filesystem::path& name) {
  const auto path = found(name);
  if (!is_folder(path)) return path;
  for (const auto* const usual : kUsualNames)
    if (is_there(path / usual)) return path / usual;
  const auto files = weights_lying_in(path);
  auto there = files.empty() ? adapters_below(path) : "";
  if (files.empty() && there.empty()) there = what_lies_there(path);
  require(!files.empty(), path.string(), " is a folder without a LoRA that Braid reads",
          there.empty() ? "" : ": ", there);
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
  require(files.size() == 1, path.string(), " is a folder with ", files.size(),
          " files of weights: give one of them: ", names);
  return files.front();
}

std::vector<std::filesystem::path> files_of_adapter(const std::filesystem::path& path) {
  const auto file = adapter_in(path);
  return {file, config_beside(file)};
}

AdapterFile::AdapterFile(const std::filesystem::path& given) : source_(adapter_in(given).string()) {
  const std::filesystem::path path = source_;
  const auto checkpoint = Checkpoint::open_file(path);
  const auto tensors = with_int8_joined(checkpoint.tensors());
  for (const auto& [name, stored] : tensors) {
    refuse_lone_scale(tensors, name, source_);
    const auto [spelled, role] = parse_adapter_key(name);
    auto& module = modules_[underscored(spelled)];
    module.name = spelled;
    const auto [it, is_new] = module.tensors.emplace(role, stored);
    require(is_new || role == AdapterRole::kUnreadable, source_, ": the tensors '",
            it->second.entry.name, "' and '", name, "' are the same part of one module");
  }
  check_applicable(checkpoint);
  if (!is_adapter(checkpoint))
    throw InputError(
        text_of(source_, " is not a LoRA: ", why_no_adapter(path, checkpoint.tensors().size())));
  const auto bytes = checkpoint.tensors().begin()->second.file->bytes();
  require(!begins_as_gguf(bytes), source_, " is a GGUF file, an adapter should be safetensors");
  metadata_ = read_adapter_metadata(bytes, source_);
  take_config_beside(path);
}

// peft keeps alpha there for adapter_model.safetensors alone, whatever is before its names: another
// file in that folder, or one that another program wrote, need not belong to it.
void AdapterFile::take_config_beside(const std::filesystem::path& path) {
  const auto config = config_beside(path);
  const bool is_usual = path.filename() == "adapter_model.safetensors";
  const bool is_config = is_there(config), says_nothing = metadata_.scalings.empty();
  const auto scaled = scaled_by_others(modules_);
  if (is_usual && is_config) {
    const auto scaling = read_peft_config(read_file(config), config.string());
    metadata_.scalings["base_model"] = scaling;
    if (scaled.not_of_peft.empty()) metadata_.beside = scaling;
  }
  std::string why;
  if (is_usual && !is_config)
    why = " lies without its adapter_config.json, in which peft keeps alpha";
  else if (is_config && is_usual && !scaled.not_of_peft.empty())
    why = " lies beside peft's adapter_config.json, whose alpha it does not take, as peft has no " +
          ("names like '" + scaled.not_of_peft + "'");
  else if (is_config && !is_usual && !scaled.of_peft.empty())
    why = " lies beside an adapter_config.json, whose alpha is that of adapter_model.safetensors";
  if (says_nothing && !why.empty())
    note_ = source_ + why + ": its changes are added as if alpha were the rank";
}

// A file in which nothing can be applied is refused by what it is.
void AdapterFile::check_applicable(const Checkpoint& file) const {
  using Role = AdapterRole;
  const std::string *other = nullptr, *lone = nullptr;
  bool is_only_lone = true;
  for (const auto& [name, stored] : file.tensors()) {
    const auto role = parse_adapter_key(name).role;
    const bool is_lone = role == Role::kAlpha || role == Role::kMagnitude;
    if (!is_lone && role != Role::kUnreadable && role != Role::kReplacement) return;
    is_only_lone &= is_lone;
    if (!lone && is_lone) lone = &name;
    if (!other && role == Role::kUnreadable && is_surely_of_adapter(name)) other = &name;
  }
  require(!other, source_, " holds an adapter of the kind ", other ? unreadable_kind(*other) : "",
          ", as '", other ? *other : "", "' tells, which Braid cannot apply: ", kApplied);
  require(!lone || !is_only_lone, source_, ": '", lone ? parse_adapter_key(*lone).module : "",
          "' lacks one of the tensors that belong together: the file has '", lone ? *lone : "",
          "' without the factors of the change that it scales");
}

const AdapterModule* AdapterFile::find(const std::string& module) const {
  const auto it = modules_.find(module);
  return it == modules_.end() ? nullptr : &it->second;
}

bool is_adapter(const Checkpoint& file) {
  const auto& tensors = file.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    const auto role = parse_adapter_key(tensor.first).role;
    if (role == AdapterRole::kUnreadable) return is_surely_of_adapter(tensor.first);
    return role != AdapterRole::kReplacement;
  });
}

void check_adapter(const std::filesystem::path& name) { (void)AdapterFile(name); }

void check_scale(const Adapter& adapter) {
  require(std::isfinite(static_cast<float>(adapter.scale)), "the scale of ", adapter.file.string(),
          " should be a finite number of 32 bits, it is ", adapter.scale);
}

std::vector<AppliedAdapter> open_adapters(const std::vector<Adapter>& adapters) {
  std::vector<AppliedAdapter> opened;
  for (const auto& adapter : adapters) {
    check_scale(adapter);
    opened.push_back({std::make_shared<const AdapterFile>(adapter.file), adapter.scale});
  }
  return opened;
}

}  // namespace braid
