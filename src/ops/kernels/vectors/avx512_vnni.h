// AVX-512 vectors with instructions for codes.
#pragma once

#include <immintrin.h>

#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

// Adds the products of each lane's four codes to its sum; those of `a` are unsigned.
inline SixteenInts plus_fours(SixteenInts sums, SixteenInts a, SixteenInts b) {
  return (SixteenInts)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)a, (__m512i)b);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
