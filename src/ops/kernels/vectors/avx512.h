// Vectors of AVX-512.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kLanes = 16, kTileRows = 14;  // 14 x 2 sums, 2 of the panel, 1 of x: 31 of 32

typedef float Floats __attribute__((vector_size(64), may_alias));
typedef int32_t Ints __attribute__((vector_size(64)));

// Of each lane the larger; b's where one is not a number. With a mask, since GCC 12 takes
// what the intrinsic without one leaves undefined for a mistake.
inline Floats larger(Floats a, Floats b) {
  return (Floats)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}

// Of each lane, two numbers of 16 bits: the sum of the products of both.
inline Ints pair_products(Ints a, Ints b) {
  return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
