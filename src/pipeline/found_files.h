// The files that make a model where only some are named: in a models folder of ComfyUI, and among
// the configurations and tokenizers that come with Braid.
#pragma once

#include "braid/braid.h"

namespace braid {

// The options with `model`, `components`, `text_encoder_files`, `vae_file` and `adapters` as paths
// of what `comfy` and `published` have of them, and without `comfy`. Options that name all files
// themselves stay as they are. Throws InputError where nothing fits, naming what there is.
PipelineOptions with_files_found(PipelineOptions options);

// Of the model directories in `published`, the one that has the shape of the single file; where
// several have, the one whose name is most like the file's. Throws InputError where none has.
std::filesystem::path published_directory(const std::filesystem::path& transformer,
                                          const std::filesystem::path& published);

}  // namespace braid
