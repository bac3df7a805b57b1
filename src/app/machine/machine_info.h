// What Braid finds to compute with.
#pragma once

#include "app/print/readable_json.h"

namespace braid {

// Versions, LibTorch's build, the CPU, the devices, the GPUs with their presets, what was set in
// the environment, the bundled model.
OrderedJson machine_info();

// Bytes that are free on "cpu" or "cuda:1"; 0 where nobody says.
std::int64_t free_bytes_of(const std::string& device);

// What times of a device belong to: the CPU's name, or the GPU's architecture and memory.
std::string name_of_machine(const std::string& device);

}  // namespace braid
