// What files of weights say about themselves in their metadata.
#pragma once

#include <string>
#include <vector>

#include "weights/files/checkpoint.h"

namespace braid {

// Titles, architectures and names of the base model, as ModelSpec, trainers and GGUF write them;
// not descriptions, which mention anything. Empty for a file without metadata.
std::vector<std::string> naming_notes(const Checkpoint& checkpoint);

}  // namespace braid
