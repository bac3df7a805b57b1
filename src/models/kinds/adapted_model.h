// Which model an adapter is for, by the names of the layers that it changes.
#pragma once

#include <string>
#include <vector>

#include "weights/adapters/adapter_file.h"

namespace braid {

// The families that Braid runs (Description::family) whose layers are named like the most of an
// adapter's `modules`, which are underscored; text encoders' count for none. Empty: most of them
// are named like no family's.
std::vector<std::string> families_of_adapter(const std::vector<std::string>& modules);

// "a Qwen-Image model", "a FLUX.1 or FLUX.2 model", also of models that Braid does not run; empty
// if that cannot be told.
std::string adapted_model(const Checkpoint& file);

// A clause on an adapter that a model of `family` leaves unused in part: what it looks like. Empty
// if it is as like to that family as to any other.
std::string likeness_of_adapter(const AdapterFile& file, const std::string& family);

}  // namespace braid
