// AVX-512 vectors with bfloat16 and codes (ops/kernels/vectors), as Intel's manual defines them
// (VMAXPS, VCVTNE2PS2BF16, VDPBF16PS, VPDPBUSD), except that numbers below 2^-126 are kept.
#pragma once

#include <stdint.h>

#include <cstdint>

#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

inline Sixteen larger(Sixteen a, Sixteen b) {
  for (int i = 0; i < 16; ++i) a[i] = a[i] > b[i] ? a[i] : b[i];
  return a;
}

inline std::uint16_t to_half(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  if (x != x) return std::uint16_t(bits >> 16 | 0x40);
  return std::uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline SixteenWords to_halves(Sixteen low, Sixteen high) {
  std::uint16_t halves[32];
  for (int i = 0; i < 16; ++i) {
    halves[i] = to_half(low[i]);
    halves[16 + i] = to_half(high[i]);
  }
  return __builtin_bit_cast(SixteenWords, halves);
}

inline Sixteen plus_pairs(Sixteen sums, SixteenWords a, SixteenWords b) {
  const auto high = [](std::uint32_t word) { return __builtin_bit_cast(float, word & 0xffff0000); };
  for (int i = 0; i < 16; ++i)
    sums[i] += high(a[i]) * high(b[i]) + high(a[i] << 16) * high(b[i] << 16);
  return sums;
}

inline SixteenInts plus_fours(SixteenInts sums, SixteenInts a, SixteenInts b) {
  for (int i = 0; i < 16; ++i)
    for (int byte = 0; byte < 4; ++byte)
      sums[i] += std::uint8_t(a[i] >> 8 * byte) * std::int8_t(b[i] >> 8 * byte);
  return sums;
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
