// AVX-512 vectors of rows that are rounded to bfloat16 by an instruction. It rounds to nearest,
// ties to even, as to_nearest() does, but takes numbers below 2^-126 as zero.
#pragma once

#include "ops/kernels/vectors/avx512.h"

namespace braid::ops::BRAID_ISA {
namespace {

inline __m512i both_nearest(Floats a, Floats b) {
  return (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a);
}

inline void put_nearest(Floats a, Floats b, uint16_t* out) {
  _mm512_storeu_si512(out, both_nearest(a, b));
}
inline void put_nearest_shuffled(Floats a, Floats b, uint16_t* out) {
  const __m512i fours = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  _mm512_storeu_si512(out, _mm512_maskz_permutexvar_epi64(0xff, fours, both_nearest(a, b)));
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
