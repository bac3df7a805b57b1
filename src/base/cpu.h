// Processor features.
#pragma once

#include <set>
#include <string>

namespace braid {

// Feature levels of x86 processors, each including all before it. Our loops are compiled for them,
// or LibTorch's products gain from them. Other processors, such as Arm's, are kBaseline.
enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

const char* isa_name(Isa isa);  // baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx

struct Cpu {
  std::string model;            // "AMD EPYC ..."; empty if the system does not say
  std::set<std::string> flags;  // in Linux's spelling: avx2, avx512_bf16, amx_bf16, bf16 (Arm)
  bool is_limited = false;      // features were removed by limit_cpu()

  bool has(const std::string& flag) const { return flags.contains(flag); }
  Isa isa() const;
  // Whether it multiplies bfloat16 without widening.
  bool has_bfloat16() const;
  // Whether it multiplies bfloat16 pairs (VDPBF16PS) at twice the rate of float32, as AMD's
  // processors do. Intel's take twice as long as float32; limited CPUs are assumed to be AMD's.
  bool has_fast_pairs() const;
  // Whether bfloat16 is about as fast as float32, at half the memory: with AVX2 and above, our
  // kernels widen it while reading.
  bool is_fast_in_bfloat16() const { return has_bfloat16() || (has("avx2") && has("fma")); }
};

// `cpu` without the flags of levels above `isa`. Throws InputError if there is no such level or the
// CPU does not reach it.
Cpu limit_cpu(Cpu cpu, const std::string& isa);

// This machine's processor, from /proc/cpuinfo, limited to BRAID_ISA if that is set. Read once.
const Cpu& read_cpu();

}  // namespace braid
