// AVX-512 vectors with bfloat16 instructions.
#pragma once

#include <immintrin.h>

#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

// The larger of each lane; b's lane if either is NaN. Masked, because GCC 12 warns about the value
// the unmasked intrinsic leaves undefined.
inline Sixteen larger(Sixteen a, Sixteen b) {
  return (Sixteen)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
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
