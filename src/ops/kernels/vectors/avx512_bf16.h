// Vectors of AVX-512 with instructions for bfloat16.
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

// Adds to each lane the products of both numbers of its words.
inline Sixteen plus_pairs(Sixteen sums, SixteenWords a, SixteenWords b) {
  return (Sixteen)_mm512_dpbf16_ps((__m512)sums, (__m512bh)a, (__m512bh)b);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
