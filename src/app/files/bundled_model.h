// Files that come with Braid: the small model, and published models without their weights.
#pragma once

#include <filesystem>

#include "braid/braid.h"

namespace braid {

// PROGRAM/../share/braid/models/demo, in build folders and in installations.
// Throws InputError if it is missing.
std::filesystem::path bundled_model();

// Names the files that make the model: the bundled one if none is given, and whatever a single file
// or a ComfyUI models folder leaves open. Throws InputError.
void settle_model(PipelineOptions& options);

}  // namespace braid
