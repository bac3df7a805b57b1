// AMD's GPUs as listed by the kernel's driver: what is known of them before any of their libraries
// is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace braid {

struct GpuNode {
  int node;                     // its number among those this process may use, as ROCm's variables
  std::string architecture;     // "gfx1101"
  std::uint64_t bytes;          // of its own memory
  std::uint64_t unique_id = 0;  // also used by ROCm's variables; 0: it has none
};

// Where the list is: /sys/class/kfd/kfd/topology, or the folder named by BRAID_KFD_TOPOLOGY.
std::filesystem::path gpu_topology();

// Lists the nodes in numerical order, and none if there are none. Nodes that this process may not
// use are left out and not counted, as ROCm does: their properties cannot be read (a container's
// device cgroup), or their device is not in `devices`.
std::vector<GpuNode> read_gpu_nodes(const std::filesystem::path& topology,
                                    const std::filesystem::path& devices = "/dev/dri");

}  // namespace braid
