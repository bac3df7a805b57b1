#include "weights/files/folder_files.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <regex>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = ".safetensors.index";

// macOS writes such files of attributes on disks that have no place for these.
bool is_apple_double(const fs::path& path) { return path.filename().string().starts_with("._"); }

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : entries_in(folder, unreadable))
    if (!entry.is_directory(unreadable) && !is_apple_double(entry.path()))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Orders several variants by preference, others by name.
std::size_t variant_rank(const std::string& name) {
  constexpr std::array kPreferred = {"bf16", "fp16", "fp32", "fp8"};
  for (std::size_t i = 0; i < kPreferred.size(); ++i)
    if (name.find(kPreferred[i]) != name.npos) return i;
  return kPreferred.size();
}

// The names that match, those of preferred variants first.
std::vector<std::string> matching(const std::vector<std::string>& names,
                                  const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (const auto& name : names)
    if (std::regex_match(name, regex)) found.push_back(name);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return variant_rank(a) < variant_rank(b); });
  return found;
}

std::string escaped(const std::string& text) {
  return std::regex_replace(text, std::regex(R"([.+*?^$()\[\]{}|\\])"), R"(\$&)");
}

// A single file of a variant, or an index of its shards.
FolderFiles variant_in(const fs::path& folder, const std::vector<std::string>& names,
                       const std::string& stem) {
  const auto begin = escaped(stem);
  FolderFiles found;
  for (const auto& ending : {R"(\.\w+\.(safetensors|sft))", R"(\.\w+\.gguf)",
                             R"((\.safetensors\.index\.\w+|\.\w+\.safetensors\.index)\.json)"})
    for (const auto& name : matching(names, begin + ending)) {
      if (!found.is_empty())
        found.left_alone.push_back(folder / name);
      else if (name.ends_with(".json"))
        found.index = folder / name;
      else
        found.files = {folder / name};
    }
  return found;
}

// All of "STEM-00001-of-00003.safetensors", also with a variant before or after the number.
FolderFiles shards_in(const fs::path& folder, const std::vector<std::string>& names,
                      const std::string& stem) {
  const std::regex shard(escaped(stem) +
                         R"((\.\w+)?-(\d{5})-of-(\d{5})(\.\w+)?\.(safetensors|sft))");
  std::map<std::string, std::vector<fs::path>> by_set;
  std::map<std::string, std::size_t> wanted;
  for (const auto& name : names) {
    std::smatch match;
    if (!std::regex_match(name, match, shard)) continue;
    const auto set = match[1].str() + match[4].str() + " of " + match[3].str();
    by_set[set].push_back(folder / name);
    wanted[set] = std::stoul(match[3]);
  }
  std::vector<std::vector<fs::path>> whole;
  for (const auto& [set, files] : by_set)
    if (files.size() == wanted[set]) whole.push_back(files);
  std::stable_sort(whole.begin(), whole.end(), [](const auto& a, const auto& b) {
    return variant_rank(a.front().filename()) < variant_rank(b.front().filename());
  });
  FolderFiles found;
  for (const auto& files : whole)
    if (found.files.empty())
      found.files = files;
    else
      found.left_alone.push_back(files.front());
  if (!found.is_empty()) return found;
  for (const auto& [set, files] : by_set)
    throw InputError(text_of(folder.string(), " has ", files.size(), " of ", wanted[set],
                             " shards, such as ", files.front().filename().string(),
                             ": the others are missing, and so is their index"));
  return {};
}

// Formats of weights that Braid does not read, by their endings.
const char* other_format(const std::string& name) {
  const auto ending = ascii_lower_case(fs::path(name).extension().string());
  if (ending == ".bin" || ending == ".pt" || ending == ".pth" || ending == ".ckpt")
    return "a pickle of PyTorch's";
  if (ending == ".msgpack") return "a file of Flax's";
  if (ending == ".h5") return "a file of Keras's";
  if (ending == ".onnx") return "a file of ONNX's";
  const bool is_unfinished =
      ending == ".part" || ending == ".incomplete" || ending == ".aria2" || ending == ".crdownload";
  return is_unfinished ? "a download that was not completed" : nullptr;
}

// Where files are looked for.
struct Listing {
  fs::path place;
  std::function<bool(const std::string& name)> has;
  std::vector<std::string> names;
};

FolderFiles find_weights_among(const Listing& listing, const std::string& stem) {
  const auto& folder = listing.place;
  const auto& names = listing.names;
  for (const char* const ending : {".safetensors", ".sft"})
    if (listing.has(stem + ending)) return {.files = {folder / (stem + ending)}};
  const auto index = stem + kIndex + ".json";
  if (listing.has(index)) return {.index = folder / index};
  if (listing.has(stem + ".gguf")) return {.files = {folder / (stem + ".gguf")}};
  if (auto variant = variant_in(folder, names, stem); !variant.is_empty()) return variant;
  if (auto shards = shards_in(folder, names, stem); !shards.is_empty()) return shards;
  const auto other = stem == "model" ? "diffusion_pytorch_model" : "model";
  const auto other_index = std::string(other) + kIndex + ".json";
  if (listing.has(other_index)) return {.index = folder / other_index};
  std::vector<fs::path> all;
  for (const auto& name : names)
    if (is_weights_name(name)) all.push_back(folder / name);
  return all.size() == 1 ? FolderFiles{.files = all} : FolderFiles();
}

}  // namespace

bool is_safetensors_name(const fs::path& path) {
  const auto ending = ascii_lower_case(path.extension().string());
  return (ending == ".safetensors" || ending == ".sft") && !is_apple_double(path);
}

bool is_weights_name(const fs::path& path) {
  const bool is_gguf =
      ascii_lower_case(path.extension().string()) == ".gguf" && !is_apple_double(path);
  return is_gguf || is_safetensors_name(path);
}

FolderFiles find_weights(const fs::path& folder, const std::string& stem) {
  const auto has = [&](const std::string& name) { return is_there(folder / name); };
  return find_weights_among({.place = folder, .has = has, .names = names_in(folder)}, stem);
}

FolderFiles find_weights(const std::vector<std::string>& names, const std::string& stem,
                         const std::string& where) {
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  auto found = find_weights_among({.place = where, .has = has, .names = names}, stem);
  found.index = found.index.filename();
  for (auto* const files : {&found.files, &found.left_alone})
    for (auto& file : *files) file = file.filename();
  return found;
}

std::vector<fs::path> weights_lying_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& name : names_in(folder))
    if (is_weights_name(name)) files.push_back(folder / name);
  return files;
}

std::string what_lies_there(const fs::path& folder) {
  const auto names = names_in(folder);
  for (const auto& name : names)
    if (const auto* const format = other_format(name))
      return text_of("it has ", name, ", ", format,
                     ", which Braid does not read: it reads .safetensors and .gguf");
  std::string list;
  for (const auto& file : weights_lying_in(folder))
    list += (list.empty() ? "" : ", ") + file.filename().string();
  return list.empty() ? "" : "it has " + list + ", one of which should have that name";
}

}  // namespace braid
