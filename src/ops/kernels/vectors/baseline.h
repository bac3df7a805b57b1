// Vectors available on every machine of its kind.
#pragma once

#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kLanes = 4, kTileRows = 4;

typedef float Floats __attribute__((vector_size(16), may_alias));
typedef int32_t Ints __attribute__((vector_size(16)));

// The larger of each lane; b's lane if either is NaN.
inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }
// The smaller of each lane, likewise.
inline Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

inline Floats nearly_inverse(Floats x) { return 1 / x; }

// Each lane has two 16-bit numbers and gets the sum of both products.
inline Ints pair_products(Ints a, Ints b) {
  return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
}

// kLanes bytes, without and with signs.
inline Ints bytes_at(const uint8_t* p) { return Ints{p[0], p[1], p[2], p[3]}; }
inline Ints codes_at(const uint8_t* p) {
  return Ints{int8_t(p[0]), int8_t(p[1]), int8_t(p[2]), int8_t(p[3])};
}

// kLanes 16-bit numbers without signs.
inline Ints halves_at(const uint16_t* p) { return Ints{p[0], p[1], p[2], p[3]}; }

// Each lane below 2^16.
inline void put_halves(Ints x, uint16_t* out) {
  for (int i = 0; i < kLanes; ++i) out[i] = uint16_t(x[i]);
}
inline void put_halves(Ints a, Ints b, uint16_t* out) {
  put_halves(a, out);
  put_halves(b, out + kLanes);
}

// 2 kLanes 16-bit numbers in the upper halves of words, the lower ones zero, and back.
inline void get_shuffled(const uint16_t* p, Ints& a, Ints& b) {
  a = halves_at(p) << 16;
  b = halves_at(p + kLanes) << 16;
}
inline void get_shuffled(const float* p, Floats& a, Floats& b) {
  a = Floats{p[0], p[1], p[2], p[3]};
  b = Floats{p[4], p[5], p[6], p[7]};
}
inline void put_shuffled(Ints a, Ints b, uint16_t* out) { put_halves(a, b, out); }

// 16 numbers, of which each lane names one.
inline Floats chosen(const float (&numbers)[16], Ints places) {
  return Floats{numbers[places[0]], numbers[places[1]], numbers[places[2]], numbers[places[3]]};
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
