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
// The smaller of each lane, likewise.
inline Floats smaller(Floats a, Floats b) {
  return (Floats)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
}

// 1 / x to 1e-7, for normal x up to 2^126: by an estimate and a step of Newton's, since a
// division takes longer.
inline Floats nearly_inverse(Floats x) {
  const Floats estimate = (Floats)_mm512_maskz_rcp14_ps(0xffff, (__m512)x);
  return estimate + estimate * (1 - x * estimate);
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

// kLanes 16-bit numbers without signs.
inline Ints halves_at(const uint16_t* p) {
  return (Ints)_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256((const __m256i*)p));
}

// Each lane below 2^16.
inline void put_halves(Ints x, uint16_t* out) {
  _mm256_storeu_si256((__m256i*)out, _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)x));
}
inline void put_halves(Ints a, Ints b, uint16_t* out) {
  put_halves(a, out);
  put_halves(b, out + kLanes);
}

// 2 kLanes 16-bit numbers in the upper halves of words, the lower ones zero. Their order is that of
// the processor's quarters of a register, which put_shuffled() undoes.
inline void get_shuffled(const uint16_t* p, Ints& a, Ints& b) {
  const __m512i all = _mm512_loadu_si512(p), zero = _mm512_setzero_si512();
  a = (Ints)_mm512_unpacklo_epi16(zero, all);
  b = (Ints)_mm512_unpackhi_epi16(zero, all);
}
// As many numbers in the same order.
inline void get_shuffled(const float* p, Floats& a, Floats& b) {
  const __m512 low = _mm512_loadu_ps(p), high = _mm512_loadu_ps(p + kLanes);
  a = (Floats)_mm512_maskz_shuffle_f32x4(0xffff, low, high, 0x88);
  b = (Floats)_mm512_maskz_shuffle_f32x4(0xffff, low, high, 0xdd);
}
// Each lane below 2^16.
inline void put_shuffled(Ints a, Ints b, uint16_t* out) {
  _mm512_storeu_si512(out, _mm512_packus_epi32((__m512i)a, (__m512i)b));
}

// 16 numbers, of which each lane names one.
inline Floats chosen(const float (&numbers)[16], Ints places) {
  return (Floats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)places, _mm512_loadu_ps(numbers));
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
