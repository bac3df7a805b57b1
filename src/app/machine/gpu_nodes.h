// AMD's GPUs as the kernel's driver lists them: what can be known of them before any library of
// theirs is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace braid {

struct GpuNode {
  int node;                     // its number in the list, by which ROCm's variables name it
  std::string architecture;     // "gfx1101"
  std::uint64_t bytes;          // of its own memory
  std::uint64_t unique_id = 0;  // by which ROCm's variables name it too; 0: it has none
};

// Where the list is: /sys/class/kfd/kfd/topology, or what BRAID_KFD_TOPOLOGY names.
std::filesystem::path gpu_topology();

// In the order of their numbers. Empty where there are none; nodes that cannot be read are left
// out.
std::vector<GpuNode> read_gpu_nodes(const std::filesystem::path& topology);

}  // namespace braid
