#include "base/gpu_nodes.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include "base/folder_entries.h"
#include "base/hexadecimal.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Linux, drivers/gpu/drm/amd/include/kfd_ioctl.h and kfd_crat.h: a GPU's own memory.
constexpr std::uint64_t kHeapPublic = 1, kHeapPrivate = 2;

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number >= 0 ? std::optional(number) : std::nullopt;
}

// "name value" lines, up to the first that is not one. Never waits for a pipe of that name.
std::map<std::string, std::uint64_t> read_properties(const fs::path& file) {
  std::map<std::string, std::uint64_t> properties;
  std::error_code missing;
  if (!fs::is_regular_file(file, missing)) return properties;
  std::ifstream lines(file);
  for (std::string name, text; lines >> name >> text;) {
    const auto value = number_in<std::uint64_t>(text);
    if (!value) break;
    properties[name] = *value;
  }
  return properties;
}

// Sorted by number: directories are unordered.
std::vector<int> numbered_folders(const fs::path& folder) {
  std::vector<int> numbers;
  std::error_code unreadable;
  for (const auto& entry : entries_in(folder, unreadable)) {
    if (const auto number = number_in<int>(entry.path().filename().string()))
      numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// 110001 -> "gfx1101", 90010 -> "gfx90a": the last two digits are hexadecimal.
std::string architecture_of(std::uint64_t version) {
  return "gfx" + std::to_string(version / 10000) + hex_digit(unsigned(version / 100 % 100)) +
         hex_digit(unsigned(version % 100));
}

std::uint64_t memory_of(const fs::path& node) {
  std::uint64_t bytes = 0;
  for (const int bank : numbered_folders(node / "mem_banks")) {
    auto properties = read_properties(node / "mem_banks" / std::to_string(bank) / "properties");
    const auto heap = properties["heap_type"];
    if (heap == kHeapPublic || heap == kHeapPrivate) bytes += properties["size_in_bytes"];
  }
  return bytes;
}

// Through which a GPU is used; CPUs have none.
bool has_device(std::map<std::string, std::uint64_t>& properties, const fs::path& devices) {
  const auto minor = properties["drm_render_minor"];
  std::error_code unreadable;
  return minor == 0 || fs::exists(devices / ("renderD" + std::to_string(minor)), unreadable);
}

}  // namespace

fs::path gpu_topology() {
  const auto* const chosen = std::getenv("BRAID_KFD_TOPOLOGY");
  return chosen ? chosen : "/sys/class/kfd/kfd/topology";
}

// ROCm's libhsakmt, topology.c: topology_sysfs_check_node_supported().
std::vector<GpuNode> read_gpu_nodes(const fs::path& topology, const fs::path& devices) {
  std::vector<GpuNode> gpus;
  int num_left_out = 0;
  for (const int node : numbered_folders(topology / "nodes")) {
    const auto folder = topology / "nodes" / std::to_string(node);
    auto properties = read_properties(folder / "properties");
    if (properties.empty() || !has_device(properties, devices)) {
      ++num_left_out;
      continue;
    }
    const auto version = properties["gfx_target_version"];  // 0: a CPU
    if (version == 0) continue;
    gpus.push_back({node - num_left_out, architecture_of(version), memory_of(folder),
                    properties["unique_id"]});
  }
  return gpus;
}

}  // namespace braid
