// ComfyUI's extra_model_paths.yaml, which names folders of models elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid {

struct ExtraFolder {
  std::string kind;  // ComfyUI's name of the folder that it adds to: "checkpoints", "clip"
  std::filesystem::path path;
  bool is_default = false;  // comes before ComfyUI's own
};

// The folders in the order of the file; they need not be there. As in ComfyUI a relative
// `base_path` begins at the file's own folder. Throws InputError naming the line for what is no
// YAML, and for paths that are not text.
std::vector<ExtraFolder> read_extra_model_paths(const std::filesystem::path& file);

}  // namespace braid
