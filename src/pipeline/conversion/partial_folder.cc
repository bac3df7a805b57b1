#include "pipeline/conversion/partial_folder.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "pipeline/conversion/checked_copy.h"

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

}  // namespace

// What is converted and how: an interrupted conversion resumes only with the same recipe.
std::string recipe_of(const ConvertOptions& o, const fs::path& given_components) {
  const auto components = given_components.empty() ? fs::path() : real_path(given_components);
  auto adapters = OrderedJson::array();  // the notes of shards cover their contents
  for (const auto& [file, scale] : o.adapters)
    adapters.push_back({{"file", real_path(file).string()}, {"scale", scale}});
  const OrderedJson recipe = {{"model", real_path(o.model).string()},
                              {"components", components.string()},
                              {"dtype", int(o.dtype)},
                              {"quantize", int(o.memory.quantize)},
                              {"quantize_text", int(o.memory.quantize_text)},
                              {"keep_dense", o.memory.keep_dense},
                              {"adapters", adapters},
                              {"form", int(o.form)},
                              {"only_used_layers", o.only_used_layers},
                              {"version", version()}};
  // a path may be invalid UTF-8
  return recipe.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

// The recipe goes last: until then it marks the folder as a conversion's.
void remove_all_but(const std::set<std::string>& kept, const fs::path& folder) {
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename();
    if (name != kRecipeFile && !kept.contains(name.string())) others.push_back(entry.path());
  }
  for (const auto& other : others) {
    std::error_code failed;
    fs::remove_all(other, failed);
    check(!failed, "cannot remove ", other, ": ", failed.message());
  }
}

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
    remove_all_but({}, folder);
  }
  write_file(file, recipe);
  return lock;
}

}  // namespace braid
