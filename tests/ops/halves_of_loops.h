// The vectors that go with tiles (ops/kernels/vectors/amx.h) as Intel's manual defines them
// (VMAXPS, VCVTNE2PS2BF16, VDPBF16PS), but that numbers below 2^-126 stay what they are.
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

inline Sixteen plus_halves(Sixteen sums, SixteenWords pairs) {
  for (int i = 0; i < 16; ++i)
    sums[i] += __builtin_bit_cast(float, pairs[i] & 0xffff0000) +
               __builtin_bit_cast(float, pairs[i] << 16);
  return sums;
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
