#include "base/control_group.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace braid {
namespace {

namespace fs = std::filesystem;

// "max" and -1, which stand for no limit, are no such numbers.
std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return {};
  return value;
}

std::vector<std::string> words_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

std::optional<std::uint64_t> number_in(const fs::path& path) {
  const auto words = words_of(path);
  return words.empty() ? std::nullopt : number(words.front());
}

// Reads the number behind `name` in a file whose lines are a name and a number.
std::uint64_t number_named(const std::string& name, const fs::path& path) {
  const auto words = words_of(path);
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end() || found + 1 == words.end()) return 0;
  return number(found[1]).value_or(0);
}

template <class T>
void lower(std::optional<T>& limit, std::optional<T> other) {
  if (other) limit = std::min(limit.value_or(*other), *other);
}

// The files of one version.
struct MemoryFiles {
  const char *limit, *used, *cached;
};
constexpr MemoryFiles kMemory1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr MemoryFiles kMemory2 = {"memory.max", "memory.current", "inactive_file"};

void add_memory(const fs::path& folder, const MemoryFiles& files, ControlGroup& group) {
  const auto limit = number_in(folder / files.limit);
  if (!limit) return;
  const auto cached = number_named(files.cached, folder / "memory.stat");
  const auto used = number_in(folder / files.used).value_or(0);
  const auto kept = std::min(*limit, used - std::min(used, cached));
  lower(group.memory_bytes, limit);
  lower(group.free_bytes, std::optional(*limit - kept));
}

std::optional<double> cpus_of(std::optional<std::uint64_t> quota,
                              std::optional<std::uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return {};
  return double(*quota) / double(*period);
}

void add_cpus_1(const fs::path& folder, ControlGroup& group) {
  lower(group.cpus,
        cpus_of(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us")));
}

void add_cpus_2(const fs::path& folder, ControlGroup& group) {
  const auto words = words_of(folder / "cpu.max");
  if (words.size() == 2) lower(group.cpus, cpus_of(number(words[0]), number(words[1])));
}

// Calls add(folder) for the group and those above it. A container may see its own group as the
// topmost, under the name it has outside: folders that are missing have no limits.
template <class Add>
void for_each_above(const fs::path& mount, const std::string& name, const Add& add) {
  auto group = fs::path(name).relative_path();
  for (; !group.empty(); group = group.parent_path()) add(mount / group);
  add(mount);
}

}  // namespace

// Lines are "number:controllers:name"; version 2 has one without controllers.
ControlGroup read_control_group(const fs::path& root) {
  const auto mount = root / "sys/fs/cgroup";
  ControlGroup group;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const auto name = line.substr(second + 1);
    const auto has = [&](const char* controller) {
      return controllers.find("," + std::string(controller) + ",") != controllers.npos;
    };
    if (controllers == ",,")
      for_each_above(mount, name, [&](const fs::path& folder) {
        add_memory(folder, kMemory2, group);
        add_cpus_2(folder, group);
      });
    if (has("memory"))
      for_each_above(mount / "memory", name,
                     [&](const fs::path& folder) { add_memory(folder, kMemory1, group); });
    if (has("cpu"))
      for_each_above(mount / "cpu", name,
                     [&](const fs::path& folder) { add_cpus_1(folder, group); });
  }
  return group;
}

int usable_cpus(const ControlGroup& group) {
  cpu_set_t bound;
  const bool is_known = ::sched_getaffinity(0, sizeof bound, &bound) == 0;
  const double all = is_known ? CPU_COUNT(&bound) : std::thread::hardware_concurrency();
  return int(std::max(1.0, std::min(all, std::ceil(group.cpus.value_or(all)))));
}

std::uint64_t usable_memory(const ControlGroup& group) {
  const auto all =
      std::uint64_t(::sysconf(_SC_PHYS_PAGES)) * std::uint64_t(::sysconf(_SC_PAGESIZE));
  return std::min(all, group.memory_bytes.value_or(all));
}

std::uint64_t available_memory(const ControlGroup& group, const fs::path& root) {
  const auto all = 1024 * number_named("MemAvailable:", root / "proc/meminfo");
  return std::min(all, group.free_bytes.value_or(all));
}

}  // namespace braid
