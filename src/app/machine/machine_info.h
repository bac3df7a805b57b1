// What Braid finds to compute with.
#pragma once

#include "app/print/readable_json.h"

namespace braid {

// Versions, LibTorch's build, the CPU, the devices, the GPUs with their presets, what was set in
// the environment, the bundled model.
OrderedJson machine_info();

// What times of a device belong to: the CPU's name, or the GPU's architecture and memory.
std::string name_of_machine(const std::string& device);

}  // namespace braid
