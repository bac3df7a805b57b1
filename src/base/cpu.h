// What the processor says of itself.
#pragma once

#include <set>
#include <string>

namespace braid {

struct Cpu {
  std::string model;            // "AMD EPYC ..."; empty where the system does not say
  std::set<std::string> flags;  // as Linux spells them: avx2, avx512_bf16, amx_bf16, bf16 (Arm)

  bool has(const std::string& flag) const { return flags.contains(flag); }
  // Multiplies bfloat16 without widening it first.
  bool has_bfloat16() const;
  // Is about as fast in bfloat16 as in float32, for half the memory: our kernels widen it as they
  // read it, with AVX2 and more.
  bool is_fast_in_bfloat16() const { return has_bfloat16() || (has("avx2") && has("fma")); }
};

Cpu read_cpu();  // from /proc/cpuinfo

}  // namespace braid
