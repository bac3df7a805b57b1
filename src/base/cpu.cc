#include "base/cpu.h"

#include <fstream>
#include <sstream>

namespace braid {
namespace {

std::string trim(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

bool Cpu::has_bfloat16() const { return has("avx512_bf16") || has("amx_bf16") || has("bf16"); }

Cpu read_cpu() {
  Cpu cpu;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !(cpu.flags.size() && line.empty());) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = trim(line.substr(0, colon));
    if (key == "model name") cpu.model = trim(line.substr(colon + 1));
    if (key != "flags" && key != "Features") continue;
    std::istringstream flags(line.substr(colon + 1));
    for (std::string flag; flags >> flag;) cpu.flags.insert(flag);
  }
  return cpu;
}

}  // namespace braid
