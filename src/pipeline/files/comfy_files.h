// Files in a models folder of ComfyUI.
#pragma once

#include <filesystem>
#include <vector>

#include "pipeline/families/comfy_folders.h"

namespace braid {

// The folder `given`, or its folder "models". Throws InputError if it is not there.
std::filesystem::path comfy_models(const std::filesystem::path& given);

// Files of weights in these folders and their subfolders, sorted by name.
std::vector<std::filesystem::path> comfy_weights(const std::filesystem::path& comfy,
                                                 const comfy::Folders& folders);

// The file of this name in these folders, with or without its extension; empty if there is none.
// Throws InputError if there are several.
std::filesystem::path find_in_comfy(const std::filesystem::path& name,
                                    const std::filesystem::path& comfy,
                                    const comfy::Folders& folders);

// The only model. Throws InputError if there are several, or none.
std::filesystem::path only_comfy_model(const std::filesystem::path& comfy);

std::string list_of_files(const std::vector<std::filesystem::path>& files);  // "none" if empty

}  // namespace braid
