// OUT.partial: where the files of a conversion lie until all of them are there.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/folder_lock.h"

namespace braid {

// What was converted and how, as JSON: beside the files until they are whole.
inline constexpr const char* kRecipeFile = "conversion.json";

// Makes the folder, or takes over what an interrupted conversion left in it: the files of the same
// recipe stay, those of another go, and `warn` is told. Throws InputError where another conversion
// is at work in it or it holds anything else, and Error when it cannot be written.
FolderLock claim_partial(const std::filesystem::path& folder, const std::string& recipe,
                         const std::function<void(const std::string&)>& warn);

}  // namespace braid
