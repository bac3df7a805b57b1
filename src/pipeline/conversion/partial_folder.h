// OUT.partial: holds the files of a conversion until it is complete.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "base/folder_lock.h"
#include "pipeline/conversion/convert.h"

namespace braid {

// What was converted and how, as JSON: beside the files until they are complete.
inline constexpr const char* kRecipeFile = "conversion.json";

// `components`: the directory of the other parts that was settled on, or empty.
std::string recipe_of(const ConvertOptions& options, const std::filesystem::path& components);

// Creates the folder, or takes over what an interrupted conversion left in it. Files of the same
// recipe stay; those of another are removed, with a warning through `warn`. Throws InputError if
// another conversion is using the folder or it holds anything else, and Error if it cannot be
// written.
FolderLock claim_partial(const std::filesystem::path& folder, const std::string& recipe,
                         const std::function<void(const std::string&)>& warn);

// Removes what lies in the folder, except entries of these names and the recipe.
void remove_all_but(const std::set<std::string>& kept, const std::filesystem::path& folder);

}  // namespace braid
