#include "weights/adapters/adapter_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
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
  if (is_there(name)) return snapshot_of(name);
  if (const auto path = found_in_hub(name); !path.empty()) return path;
  require(!hub_name(name.string()), "there is no adapter at ", name.string(), not_in_hub(name));
  return name;  // the reader of the file complains
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
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable))
    for (const auto* const usual : kUsualNames)
      if (is_there(entry.path() / usual)) names.insert(entry.path().filename().string());
  if (names.empty()) return "";
  const auto& first = *names.begin();
  return names.size() == 1 ? "its folder " + first + " has one"
                           : text_of(names.size(), " of its folders have one, such as ", first);
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
  const auto config = config_beside(path);
  if (path.filename() != "adapter_model.safetensors") return;
  if (is_there(config))
    metadata_.scalings["base_model"] = read_peft_config(read_file(config), config.string());
  else if (metadata_.scalings.empty())
    note_ = source_ + " lies without its adapter_config.json, in which peft keeps alpha: its " +
            "changes are added as if alpha were the rank";
}

// A file in which nothing can be applied is refused by what it is.
void AdapterFile::check_applicable(const Checkpoint& file) const {
  const std::string* other = nullptr;
  for (const auto& [name, stored] : file.tensors()) {
    const auto role = parse_adapter_key(name).role;
    const bool is_applicable = role != AdapterRole::kUnreadable &&
                               role != AdapterRole::kReplacement && role != AdapterRole::kAlpha;
    if (is_applicable) return;
    if (!other && role == AdapterRole::kUnreadable && is_surely_of_adapter(name)) other = &name;
  }
  require(!other, source_, " holds an adapter of the kind ", other ? unreadable_kind(*other) : "",
          ", as '", other ? *other : "", "' tells, which Braid cannot apply: ", kApplied);
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
