// AVX2 vectors.
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kLanes = 8, kTileRows = 6;  // 6 x 2 sums, 2 of the panel, 1 of x: 15 of 16 registers

typedef float Floats __attribute__((vector_size(32), may_alias));
typedef int32_t Ints __attribute__((vector_size(32)));

// The larger of each lane; b's lane if either is NaN.
inline Floats larger(Floats a, Floats b) { return (Floats)_mm256_max_ps((__m256)a, (__m256)b); }
// The smaller of each lane, likewise.
inline Floats smaller(Floats a, Floats b) { return (Floats)_mm256_min_ps((__m256)a, (__m256)b); }

inline Floats nearly_inverse(Floats x) { return 1 / x; }

// Each lane has two 16-bit numbers and gets the sum of both products.
inline Ints pair_products(Ints a, Ints b) {
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

// kLanes bytes, without and with signs.
inline Ints bytes_at(const uint8_t* p) {
  return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
inline Ints codes_at(const uint8_t* p) {
  return (Ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
}

// kLanes 16-bit numbers without signs.
inline Ints halves_at(const uint16_t* p) {
  return (Ints)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
}

// Each lane below 2^16.
inline void put_halves(Ints x, uint16_t* out) {
  const __m256i pairs = _mm256_packus_epi32((__m256i)x, (__m256i)x);
  _mm_storeu_si128((__m128i*)out, _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08)));
}
inline void put_halves(Ints a, Ints b, uint16_t* out) {
  const __m256i pairs = _mm256_packus_epi32((__m256i)a, (__m256i)b);
  _mm256_storeu_si256((__m256i*)out, _mm256_permute4x64_epi64(pairs, 0xd8));
}

// 2 kLanes 16-bit numbers in the upper halves of words, the lower ones zero. Their order is that of
// the processor's halves of a register, which put_shuffled() undoes.
inline void get_shuffled(const uint16_t* p, Ints& a, Ints& b) {
  const __m256i all = _mm256_loadu_si256((const __m256i*)p), zero = _mm256_setzero_si256();
  a = (Ints)_mm256_unpacklo_epi16(zero, all);
  b = (Ints)_mm256_unpackhi_epi16(zero, all);
}
// As many numbers in the same order.
inline void get_shuffled(const float* p, Floats& a, Floats& b) {
  const __m256 low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + kLanes);
  a = (Floats)_mm256_permute2f128_ps(low, high, 0x20);
  b = (Floats)_mm256_permute2f128_ps(low, high, 0x31);
}
// Each lane below 2^16.
inline void put_shuffled(Ints a, Ints b, uint16_t* out) {
  _mm256_storeu_si256((__m256i*)out, _mm256_packus_epi32((__m256i)a, (__m256i)b));
}

// 16 numbers, of which each lane names one.
inline Floats chosen(const float (&numbers)[16], Ints places) {
  const __m256 low = _mm256_loadu_ps(numbers), high = _mm256_loadu_ps(numbers + 8);
  const auto in_low = _mm256_permutevar8x32_ps(low, (__m256i)places);
  const auto in_high = _mm256_permutevar8x32_ps(high, (__m256i)places);
  return (Floats)_mm256_blendv_ps(in_low, in_high, (__m256)(places << 28));  // by bit 3
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
