// Finds the missing files of a model where only some are named: in a models folder of ComfyUI, in
// Hugging Face's cache, inside a checkpoint that holds all parts, and among the configurations and
// tokenizers that come with Braid.
#pragma once

#include <functional>
#include <string>

#include "braid/braid.h"

namespace braid {

// The options with all files resolved to paths, and without `comfy`. Names of files are looked up
// as a path first, then in `comfy`, then in Hugging Face's cache. Options that name all files
// themselves stay as they are. `say` hears what was chosen where several would do. Throws
// InputError listing the candidates where none fits.
PipelineOptions with_files_found(PipelineOptions options,
                                 const std::function<void(const std::string&)>& say = {});

// The model directory in `published` that has the shape of the single file (published.h).
std::filesystem::path published_directory(const std::filesystem::path& transformer,
                                          const std::filesystem::path& published);

}  // namespace braid
