// Numbers and vectors of them, for kernels: C++17 that compiles for devices (gpu.cu) and, to test
// the kernels without one, for the host.
//
// The including file defines BRAID_DEVICE, the qualifiers of device functions, and what a device
// has instructions for: the conversions, the exponential and the quotient declared here.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace braid::ops::gpu {

struct Bfloat16 {
  std::uint16_t bits;  // the upper half of a float32
};
struct Float16 {
  std::uint16_t bits;  // IEEE 754 binary16
};
struct Float8 {
  std::uint8_t bits;  // e4m3: up to 448, no infinity, 0x7f is NaN
};

BRAID_DEVICE float half_to_float(std::uint16_t bits);
BRAID_DEVICE std::uint16_t float_to_half(float x);    // to nearest, half to even
BRAID_DEVICE std::uint16_t float_to_bfloat(float x);  // the same; NaN stays NaN
// e^x and x / y to about 2^-17 of themselves, which is little beside a rounding to 16 bits.
BRAID_DEVICE float rough_exponential(float x);
BRAID_DEVICE float rough_quotient(float x, float y);

BRAID_DEVICE inline float to_float(float x) { return x; }
BRAID_DEVICE inline float to_float(std::int8_t x) { return float(x); }
BRAID_DEVICE inline float to_float(Float16 x) { return half_to_float(x.bits); }
BRAID_DEVICE inline float to_float(Bfloat16 x) {
  const std::uint32_t bits = std::uint32_t(x.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

// Its bits are those of a float16 2^8 times smaller.
BRAID_DEVICE inline float to_float(Float8 x) {
  return 256 * half_to_float(std::uint16_t((x.bits & 0x80) << 8 | (x.bits & 0x7f) << 7));
}

BRAID_DEVICE inline void round_to(float& y, float x) { y = x; }
BRAID_DEVICE inline void round_to(Float16& y, float x) { y.bits = float_to_half(x); }
BRAID_DEVICE inline void round_to(Bfloat16& y, float x) { y.bits = float_to_bfloat(x); }
// float_to_bfloat() for those without such an instruction.
BRAID_DEVICE inline std::uint16_t bfloat_by_bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return std::uint16_t(x != x ? 0x7fc0 : rounded);
}

// Rounds to the nearest, half to even; values beyond 448 become 448, NaN stays NaN.
BRAID_DEVICE inline void round_to(Float8& y, float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kLargest = 0x43e00000,
                          kSmallestNormal = 0x3c800000;
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t size = bits & 0x7fffffff;
  std::uint32_t code = 0x7e;
  if (size > kInfinity)
    code = 0x7f;
  else if (size < kSmallestNormal)
    code = std::uint32_t(rintf(fabsf(x) * 512));  // multiples of 2^-9
  else if (size < kLargest)
    code = ((size + 0x7ffff + (size >> 20 & 1)) >> 20) - (120u << 3);
  y.bits = std::uint8_t(code | (bits >> 24 & 0x80));
}

template <class T>
BRAID_DEVICE float rounded(float x) {
  T y;
  round_to(y, x);
  return to_float(y);
}

// The alignment of N numbers of `bytes` each. A pair needs only that of its numbers.
constexpr std::size_t alignment_of(std::size_t bytes, int n) {
  return n <= 2 ? bytes : bytes * n < 16 ? bytes * n : 16;
}

// N numbers moved together.
template <class T, int N>
struct alignas(alignment_of(sizeof(T), N)) Vector {
  T values[N];
};

template <int N>
struct Floats {
  float values[N];
};

// Vector i of a row that starts at `data`.
template <class T, int N>
BRAID_DEVICE Vector<T, N> load(const T* data, std::int64_t i) {
  return reinterpret_cast<const Vector<T, N>*>(data)[i];
}

template <class T, int N>
BRAID_DEVICE Floats<N> load_floats(const T* data, std::int64_t i) {
  const auto vector = load<T, N>(data, i);
  Floats<N> x;
  for (int k = 0; k < N; ++k) x.values[k] = to_float(vector.values[k]);
  return x;
}

template <class T, int N>
BRAID_DEVICE void store(T* data, std::int64_t i, const Floats<N>& x) {
  Vector<T, N> vector;
  for (int k = 0; k < N; ++k) round_to(vector.values[k], x.values[k]);
  reinterpret_cast<Vector<T, N>*>(data)[i] = vector;
}

}  // namespace braid::ops::gpu
