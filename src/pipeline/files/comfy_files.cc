#include "pipeline/files/comfy_files.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using comfy::Folders;

// A folder is looked into once, however many links lead to it: one may lead to a folder around it.
void add_weights(const fs::path& folder, std::set<fs::path>& seen, std::vector<fs::path>& found) {
  std::error_code unreadable;
  const auto real = fs::canonical(folder, unreadable);
  if (unreadable || !seen.insert(real).second) return;
  for (const auto& entry : entries_in(folder, unreadable)) {
    if (entry.is_directory(unreadable)) add_weights(entry.path(), seen, found);
    if (entry.is_regular_file(unreadable) && is_weights_name(entry.path()))
      found.push_back(entry.path());
  }
}

bool is_named(const fs::path& file, const fs::path& name) {
  return file.filename() == name.filename() || file.stem() == name.filename();
}

}  // namespace

fs::path comfy_models(const fs::path& given) {
  require(is_folder(given), "there is no ComfyUI models folder at ", given.string());
  return is_folder(given / "models") ? given / "models" : given;
}

std::vector<fs::path> comfy_weights(const fs::path& comfy, const Folders& folders) {
  std::set<fs::path> seen;
  std::vector<fs::path> found;
  for (const char* const folder : folders) add_weights(comfy / folder, seen, found);
  std::sort(found.begin(), found.end());
  return found;
}

std::string list_of_files(const std::vector<fs::path>& files) {
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
  return names.empty() ? "none" : names;
}

fs::path find_in_comfy(const fs::path& name, const fs::path& comfy, const Folders& folders) {
  for (const char* const folder : folders)
    if (is_file(comfy / folder / name)) return comfy / folder / name;
  const auto all = comfy_weights(comfy, folders);
  std::vector<fs::path> same;
  std::copy_if(all.begin(), all.end(), std::back_inserter(same),
               [&](const fs::path& file) { return is_named(file, name); });
  require(same.size() < 2, comfy.string(), " has ", same.size(), " files named ", name.string(),
          ", such as ", same.empty() ? "" : same.front().string());
  return same.empty() ? fs::path() : same.front();
}

fs::path only_comfy_model(const fs::path& comfy) {
  const auto all = comfy_weights(comfy, comfy::kModels);
  require(all.size() == 1, "one of the models in ", comfy.string(),
          " has to be chosen, it has: ", list_of_files(all));
  return all[0];
}

}  // namespace braid
