// The hardware under this process.
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// Free bytes of "cpu" or "cuda:1"; 0 if unknown.
std::int64_t free_bytes_of(const std::string& device);
// The same for the CPU, without looking at GPUs; also less than the machine has, in a container.
std::int64_t free_host_bytes();

std::string cpu_name();  // "unknown" if it does not say

// Identifies the hardware behind timings: the CPU's name, or the GPU's architecture and memory.
std::string name_of_machine(const std::string& device);

}  // namespace braid
