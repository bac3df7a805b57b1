// Copies the files of a model that a conversion leaves as they are.
#pragma once

#include <filesystem>

#include "pipeline/files/model_files.h"

namespace braid {

std::filesystem::path real_path(const std::filesystem::path& path);

// Whether writing `inner` changes the folder `outer`; links are followed.
bool lies_in(const std::filesystem::path& inner, const std::filesystem::path& outer);

// Throw Error if the copy differs. Permissions are not copied: a file that may not be written could
// not be replaced by the run that goes on after an interruption.
void copy_one(const std::filesystem::path& from, const std::filesystem::path& to);
// A file, or a folder and all in it, following links. `warn` hears of what stays behind: links that
// lead nowhere, and pipes.
void copy_all(const std::filesystem::path& from, const std::filesystem::path& to, const Warn& warn);

}  // namespace braid
