#include "base/memory_meter.h"

#include <fstream>
#include <string>

namespace braid {
namespace {

// Linux, Documentation/filesystems/proc.rst: writing 5 to clear_refs resets VmHWM to what is
// resident.
bool reset_peak(const std::filesystem::path& process) {
  std::ofstream file(process / "clear_refs", std::ios::out);
  file << "5" << std::flush;
  return file.good();
}

// "VmHWM:     1234 kB" -> 1263616
std::uint64_t field(const std::filesystem::path& process, const std::string& name) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":"))
      return 1024 * std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
  return 0;
}

}  // namespace

MemoryMeter::MemoryMeter(std::filesystem::path process)
    : process_(std::move(process)), is_exact_(true) {}

std::uint64_t MemoryMeter::take() {
  const auto peak = field(process_, is_exact_ ? "VmHWM" : "VmRSS");
  is_exact_ = is_exact_ && reset_peak(process_);
  return peak;
}

}  // namespace braid
