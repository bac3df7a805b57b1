// What the processor can do.
#pragma once

#include <set>
#include <string>

namespace braid {

// Steps that x86 processors took, each with all before it: what our loops are compiled for, and
// what LibTorch's products gain by. Others, such as Arm's, are kBaseline.
enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

const char* isa_name(Isa isa);  // baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx

struct Cpu {
  std::string model;            // "AMD EPYC ..."; empty where the system does not say
  std::set<std::string> flags;  // as Linux spells them: avx2, avx512_bf16, amx_bf16, bf16 (Arm)
  bool is_limited = false;      // to a step that it may have gone beyond

  bool has(const std::string& flag) const { return flags.contains(flag); }
  Isa isa() const;
  // Multiplies bfloat16 without widening it first.
  bool has_bfloat16() const;
  // Multiplies pairs of bfloat16 (VDPBF16PS) at twice the rate of float32, as AMD's processors do.
  // Intel's take twice as long as for float32; those that are limited are taken for AMD's.
  bool has_fast_pairs() const;
  // Is about as fast in bfloat16 as in float32, for half the memory: our kernels widen it as they
  // read it, with AVX2 and more.
  bool is_fast_in_bfloat16() const { return has_bfloat16() || (has("avx2") && has("fma")); }
};

// `cpu` without the flags of later steps than the one named; InputError where there is no such step
// or it has not come that far.
Cpu limit_cpu(Cpu cpu, const std::string& isa);

// This machine's, from /proc/cpuinfo; limited to BRAID_ISA where that says one. Read once.
const Cpu& read_cpu();

}  // namespace braid
