// Tiles of Intel AMX: palette 1, eight tiles of 16 rows of 64 bytes. Processors with it have
// vectors of AVX-512 with bfloat16.
#pragma once

#include <immintrin.h>

#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

// Of each lane the larger; b's where one is not a number. With a mask, since GCC 12 takes what the
// intrinsic without one leaves undefined for a mistake.
inline Sixteen larger(Sixteen a, Sixteen b) {
  return (Sixteen)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}

// Rounded to bfloat16, to nearest, ties to even, two a word: first those of `low`.
inline SixteenWords to_halves(Sixteen low, Sixteen high) {
  return (SixteenWords)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

// Adds to each lane both numbers of its word.
inline Sixteen plus_halves(Sixteen sums, SixteenWords pairs) {
  const auto ones = SixteenWords{} + 0x3f803f80u;
  return (Sixteen)_mm512_dpbf16_ps((__m512)sums, (__m512bh)pairs, (__m512bh)ones);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
