// What this machine offers Braid to compute with.
#pragma once

#include "app/print/readable_json.h"

namespace braid {

// Versions, LibTorch's build, the CPU, the devices, the GPUs with their presets, the environment
// set by the program, the bundled model.
OrderedJson machine_info();

// Free bytes of "cpu" or "cuda:1"; 0 if unknown.
std::int64_t free_bytes_of(const std::string& device);
// The same for the CPU, without looking at GPUs; also less than the machine has, in a container.
std::int64_t free_host_bytes();

// Identifies the hardware behind timings: the CPU's name, or the GPU's architecture and memory.
std::string name_of_machine(const std::string& device);

}  // namespace braid
