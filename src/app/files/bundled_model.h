// What comes with Braid: the small model, and of published models all but the weights.
#pragma once

#include <filesystem>

#include "braid/braid.h"

namespace braid {

// PROGRAM/../share/braid/models/demo, in build folders and where Braid is installed.
// Throws InputError when it is not there.
std::filesystem::path bundled_model();

// Names the files that make the model: the bundled one where none is given, and whatever a single
// file or a models folder of ComfyUI leaves open. Throws InputError.
void settle_model(PipelineOptions& options);

}  // namespace braid
