// Vectors of AVX2.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kLanes = 8, kTileRows = 6;  // 6 x 2 sums, 2 of the panel, 1 of x: 15 of 16 registers

typedef float Floats __attribute__((vector_size(32), may_alias));
typedef int32_t Ints __attribute__((vector_size(32)));

// Of each lane the larger; b's where one is not a number.
inline Floats larger(Floats a, Floats b) { return (Floats)_mm256_max_ps((__m256)a, (__m256)b); }

// Of each lane, two numbers of 16 bits: the sum of the products of both.
inline Ints pair_products(Ints a, Ints b) {
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
