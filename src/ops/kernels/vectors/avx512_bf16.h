// AVX-512 vectors with bfloat16 instructions.
#pragma once

#include <immintrin.h>

#include "ops/kernels/vectors/powers.h"
#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

// The larger of each lane; b's lane if either is NaN. Masked, because GCC 12 warns about the value
// the unmasked intrinsic leaves undefined.
inline Sixteen larger(Sixteen a, Sixteen b) {
  return (Sixteen)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}

// softmax.h's 2^x, by instructions that round to an integer and add to an exponent.
inline Sixteen power_of_2(Sixteen x) {
  x = (Sixteen)_mm512_maskz_min_ps(0xffff, (__m512)(Sixteen{} + 1),
                                   (__m512)larger(Sixteen{} - 126, x));
  const Sixteen n = (Sixteen)_mm512_maskz_roundscale_ps(0xffff, (__m512)x, 0);
  return (Sixteen)_mm512_maskz_scalef_ps(0xffff, (__m512)power_of_fraction(x - n), (__m512)n);
}

// Rounds to bfloat16, to nearest, ties to even, two per word: `low` first.
inline SixteenWords to_halves(Sixteen low, Sixteen high) {
  return (SixteenWords)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

// Adds both products of each lane's words to its sum.
inline Sixteen plus_pairs(Sixteen sums, SixteenWords a, SixteenWords b) {
  return (Sixteen)_mm512_dpbf16_ps((__m512)sums, (__m512bh)a, (__m512bh)b);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
