// The LoRAs in a folder, by name.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace braid {

// The folder's current files, "ink" for ink.safetensors; empty if it cannot be read. File names
// that are not UTF-8 are skipped.
std::map<std::string, std::filesystem::path> loras_in(const std::filesystem::path& folder);

}  // namespace braid
