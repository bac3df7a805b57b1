// AVX-512 vectors.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kLanes = 16, kTileRows = 14;  // 14 x 2 sums, 2 of the panel, 1 of x: 31 of 32

typedef float Floats __attribute__((vector_size(64), may_alias));
typedef int32_t Ints __attribute__((vector_size(64)));

// The larger of each lane; b's lane if either is NaN. Masked, because GCC 12 warns about the value
// the unmasked intrinsic leaves undefined.
inline Floats larger(Floats a, Floats b) {
  return (Floats)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}

// Each lane has two 16-bit numbers and gets the sum of both products.
inline Ints pair_products(Ints a, Ints b) {
  return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

// kLanes bytes, without and with signs.
inline Ints bytes_at(const uint8_t* p) {
  return (Ints)_mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128((const __m128i*)p));
}
inline Ints codes_at(const uint8_t* p) {
  return (Ints)_mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128((const __m128i*)p));
}

// Each lane below 2^16.
inline void put_halves(Ints x, uint16_t* out) {
  _mm256_storeu_si256((__m256i*)out, _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)x));
}

// 16 numbers, of which each lane names one.
inline Floats chosen(const float (&numbers)[16], Ints places) {
  return (Floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)places, _mm512_loadu_ps(numbers));
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
