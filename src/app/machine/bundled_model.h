// Files that come with Braid: the small model, and published models without their weights.
#pragma once

#include <filesystem>

#include "braid/braid.h"

namespace braid {

// PROGRAM/../share/braid/models/demo, in build folders and in installations.
// Throws InputError if it is missing.
std::filesystem::path bundled_model();
std::filesystem::path bundled_model_if_there();     // else empty
std::filesystem::path published_models_if_there();  // their folder, else empty

// The options with what comes with Braid where they leave it open: the model, and published models
// for single files. Throws InputError.
PipelineOptions with_bundled(PipelineOptions options);

}  // namespace braid
