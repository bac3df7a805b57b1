// The LoRAs in a folder, by name.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace braid {

// The folder's current files, "ink" for ink.safetensors. File names that are not UTF-8 are skipped.
// Throws Error naming the folder if it cannot be read.
std::map<std::string, std::filesystem::path> loras_in(const std::filesystem::path& folder);

}  // namespace braid
