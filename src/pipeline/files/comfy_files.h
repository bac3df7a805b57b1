// Files in a models folder of ComfyUI, or of a tool with such a folder: A1111, Forge, SwarmUI.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/families/comfy_folders.h"

namespace braid {

// The folder `given`, or its folder "models" or "Models". Throws InputError if it is not there.
std::filesystem::path comfy_models(const std::filesystem::path& given);

// The folders of these names in `comfy`, and those that ComfyUI's extra_model_paths.yaml adds to
// them, in the order in which they are searched: the last of its defaults first. They need not be
// there. Throws InputError if that file is of a form that Braid does not read.
std::vector<std::filesystem::path> comfy_folders(const std::filesystem::path& comfy,
                                                 const comfy::Folders& names);

// What could not be looked into: a folder, a link that leads nowhere.
struct UnreadPath {
  std::filesystem::path path;
  std::string sentence;  // names the path
};

struct FoundWeights {
  std::vector<std::filesystem::path> files = {};  // sorted by name
  std::vector<UnreadPath> unread = {};
};

// Files of weights in these folders and their subfolders. Folders that are missing hold none.
FoundWeights weights_below(const std::vector<std::filesystem::path>& folders);

// "; SENTENCE; SENTENCE": the end of a complaint about files that were not found.
std::string unread_clause(const std::vector<UnreadPath>& unread);

// The file of this name in these folders, with or without its extension; empty if there is none. A
// name with folders has them below the one that is searched; one without lies in any subfolder.
// Throws InputError if there are several.
std::filesystem::path find_in_comfy(const std::filesystem::path& name,
                                    const std::filesystem::path& comfy,
                                    const comfy::Folders& folders);

// The only model. Throws InputError if there are several, or none.
std::filesystem::path only_comfy_model(const std::filesystem::path& comfy);

std::string list_of_files(const std::vector<std::filesystem::path>& files);  // "none" if empty

}  // namespace braid
