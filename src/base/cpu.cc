#include "base/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/text_stream.h"

namespace braid {
namespace {

struct Step {
  const char* name;
  std::vector<std::string> flags;
};

const std::vector<Step>& steps() {
  static const std::vector<Step> steps{
      {"baseline", {}},
      {"avx2", {"avx2", "fma"}},
      {"avx512", {"avx512f", "avx512bw", "avx512vl", "avx512dq"}},
      {"avx512_vnni", {"avx512_vnni"}},
      {"avx512_bf16", {"avx512_bf16"}},
      {"amx", {"amx_tile", "amx_bf16", "amx_int8"}},
  };
  return steps;
}

std::string names_of_steps() {
  std::string names;
  for (const auto& step : steps()) names += (names.empty() ? "" : ", ") + std::string(step.name);
  return names;
}

Cpu read_cpuinfo() {
  Cpu cpu;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && (cpu.flags.empty() || !line.empty());) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = trimmed(std::string_view(line).substr(0, colon));
    if (key == "model name") cpu.model = trimmed(std::string_view(line).substr(colon + 1));
    if (key != "flags" && key != "Features") continue;
    TextReader flags(line.substr(colon + 1));
    for (std::string flag; flags >> flag;) cpu.flags.insert(flag);
  }
  return cpu;
}

}  // namespace

const char* isa_name(Isa isa) { return steps()[std::size_t(isa)].name; }

Isa Cpu::isa() const {
  const auto is_missing = [&](const Step& step) {
    return !std::all_of(step.flags.begin(), step.flags.end(), [&](auto& f) { return has(f); });
  };
  const auto missing = std::find_if(steps().begin(), steps().end(), is_missing);
  return Isa(missing - steps().begin() - 1);
}

bool Cpu::has_bfloat16() const { return has("avx512_bf16") || has("amx_bf16") || has("bf16"); }

bool Cpu::has_fast_pairs() const {
  return has("avx512_bf16") && (is_limited || !model.starts_with("Intel"));
}

Cpu limit_cpu(Cpu cpu, const std::string& isa) {
  const auto asked = std::find_if(steps().begin(), steps().end(),
                                  [&](const Step& step) { return step.name == isa; });
  require(asked != steps().end(), "BRAID_ISA should be one of ", names_of_steps(), ", it is '", isa,
          "'");
  const auto best = cpu.isa();
  require(asked - steps().begin() <= int(best), "BRAID_ISA is ", isa, ", this processor has ",
          isa_name(best), " at most");
  for (auto step = asked + 1; step != steps().end(); ++step)
    for (const auto& flag : step->flags) cpu.flags.erase(flag);
  cpu.is_limited = true;
  cpu.flags.erase("bf16");  // Arm's, which is beyond its baseline
  return cpu;
}

const Cpu& read_cpu() {
  static const Cpu cpu = [] {
    const char* const isa = std::getenv("BRAID_ISA");
    return isa && *isa ? limit_cpu(read_cpuinfo(), isa) : read_cpuinfo();
  }();
  return cpu;
}

}  // namespace braid
