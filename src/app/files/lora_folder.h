// LoRAs that lie in one folder, by their names.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace braid {

// Those of now, "ink" for ink.safetensors; empty where the folder cannot be read. Files whose names
// are no UTF-8 text are left out.
std::map<std::string, std::filesystem::path> loras_in(const std::filesystem::path& folder);

}  // namespace braid
