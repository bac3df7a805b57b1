// What files of weights say about themselves in their metadata.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weights/files/checkpoint.h"

namespace braid {

// Titles, architectures and names of the base model, as ModelSpec, trainers and GGUF write them;
// not descriptions, which mention anything. Empty for a file without metadata.
std::vector<std::string> naming_notes(const Checkpoint& checkpoint);

// The metadata that a copy in another form may take along, by key: not how numbers are coded, nor
// checksums of them; of a GGUF file only what names it.
std::map<std::string, std::string> lasting_notes(const Checkpoint& checkpoint);

}  // namespace braid
