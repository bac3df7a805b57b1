// A synthetic list of the kernel's GPUs, in the form of /sys/class/kfd/kfd/topology.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_folder.h"

namespace braid {

class MadeTopology {
 public:
  // `version` in the driver's form: 110001 for gfx1101, 0 for a CPU.
  void add(int node, std::uint64_t version, std::uint64_t bytes) const {
    const auto bank = folder_ / "nodes" / std::to_string(node) / "mem_banks" / "0";
    std::filesystem::create_directories(bank);
    std::ofstream(bank.parent_path().parent_path() / "properties")
        << "cpu_cores_count 0\nsimd_count 120\ngfx_target_version " << version
        << "\nvendor_id 4098\n";
    // heap 0 is system memory, 1 a GPU's own
    std::ofstream(bank / "properties")
        << "heap_type " << (version == 0 ? 0 : 1) << "\nsize_in_bytes " << bytes << "\nflags 0\n";
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace braid
