// What this process may use of the machine: a container, a Slurm job or a systemd service is a
// control group of the kernel, whose limits are often far below what the machine has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace braid {

// The tightest limits of the group and of those above it; nullopt where nothing limits.
struct ControlGroup {
  std::optional<std::uint64_t> memory_bytes = {};
  std::optional<std::uint64_t> free_bytes = {};  // counts as free what the kernel caches of files
  std::optional<double> cpus = {};               // processor time per time
};

// This process's group, of version 1 or 2. What cannot be read does not limit. `root` holds proc/
// and sys/.
ControlGroup read_control_group(const std::filesystem::path& root = "/");

// The processors this process may use: those it is bound to, or the time its group gets, rounded
// up.
int usable_cpus(const ControlGroup& group = read_control_group());

// The machine's memory in bytes, or the group's if that is less.
std::uint64_t usable_memory(const ControlGroup& group = read_control_group());

// The bytes that the machine can give without swapping, or the group if that is less: what the
// kernel caches of files counts as free. 0 where the kernel does not tell.
std::uint64_t available_memory(const ControlGroup& group = read_control_group(),
                               const std::filesystem::path& root = "/");

}  // namespace braid
