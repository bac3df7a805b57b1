#include "pipeline/conversion/partial_folder.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

// Whether it has the keys of our recipes: an unrelated folder may hold a file of this name, too.
bool is_recipe(const OrderedJson& found, const OrderedJson& own) {
  if (!found.is_object() || found.size() != own.size()) return false;
  for (const auto& [key, value] : own.items())
    if (!found.contains(key)) return false;
  return true;
}

std::string differences(const OrderedJson& found, const OrderedJson& own) {
  std::string keys;
  for (const auto& [key, value] : own.items())
    if (found[key] != value) keys += (keys.empty() ? "" : ", ") + key;
  return keys;
}

// The recipe goes last: until then it marks the folder as a conversion's.
void remove_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != kRecipeFile) files.push_back(entry.path());
  for (const auto& file : files) {
    std::error_code failed;
    fs::remove_all(file, failed);
    check(!failed, "cannot remove ", file, ": ", failed.message());
  }
}

}  // namespace

FolderLock claim_partial(const fs::path& folder, const std::string& recipe,
                         const std::function<void(const std::string&)>& warn) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  require(!failed, "cannot make the folder ", folder, ": ", failed.message());
  FolderLock lock(folder);
  require(lock.is_held(), "another conversion is running in ", folder);
  const auto file = folder / kRecipeFile;
  if (!fs::is_empty(folder)) {
    const auto own = OrderedJson::parse(recipe);
    const auto found = fs::is_regular_file(file) ? OrderedJson::parse(read_file(file), nullptr,
                                                                      /*allow_exceptions=*/false)
                                                 : OrderedJson();
    require(is_recipe(found, own), folder, " exists, but is not an interrupted conversion");
    if (found == own) return lock;
    if (warn)
      warn(text_of(folder, " is left over from a conversion with another ", differences(found, own),
                   ": it is removed, and the conversion starts over"));
    remove_files(folder);
  }
  write_file(file, recipe);
  return lock;
}

}  // namespace braid
