// Finds the missing files of a model where only some are named: in a models folder of ComfyUI, and
// among the configurations and tokenizers that come with Braid.
#pragma once

#include "braid/braid.h"

namespace braid {

// The options with `model`, `components`, `text_encoder_files`, `vae_file` and `adapters` resolved
// to paths found in `comfy` and `published`, and without `comfy`. Options that name all files
// themselves stay as they are. Throws InputError listing the candidates where none fits.
PipelineOptions with_files_found(PipelineOptions options);

// The model directory in `published` that has the shape of the single file. If several have, the
// one whose name is most like the file's. Throws InputError if none has.
std::filesystem::path published_directory(const std::filesystem::path& transformer,
                                          const std::filesystem::path& published);

}  // namespace braid
