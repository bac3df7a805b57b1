// Compiled several times, for different instruction sets and into different namespaces (BRAID_ISA).
// Compiled without fused multiply-adds, which round once where the definition rounds twice; see
// rows.cc.
#include "ops/kernels/codes.h"

#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = std::int64_t;

struct Bfloat16 {
  uint16_t bits;
};

// Rounds to the nearest bfloat16, half to even.
inline uint16_t upper_half(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool is_number = (bits & 0x7fffffff) <= 0x7f800000;
  return uint16_t(is_number ? rounded : 0x7fc0);
}

inline float rounded(float value, const float*) { return value; }
inline float rounded(float value, const Bfloat16*) {
  return __builtin_bit_cast(float, uint32_t(upper_half(value)) << 16);
}
inline void store(float* out, float value) { *out = value; }
inline void store(Bfloat16* out, float value) { out->bits = upper_half(value); }

template <class T>
void widen(const int8_t* codes, float scale, int64 count, void* out_) {
  auto* out = static_cast<T*>(out_);
#pragma omp simd
  for (int64 i = 0; i < count; ++i) store(out + i, float(codes[i]) * scale);
}

inline float loaded(float x) { return x; }
inline float loaded(Bfloat16 x) { return __builtin_bit_cast(float, uint32_t(x.bits) << 16); }

// Unsigned numbers compare like their bits; non-finite ones are largest.
inline float largest(const float* x, int64 count) {
  uint32_t bits = 0;
#pragma omp simd reduction(max : bits)
  for (int64 i = 0; i < count; ++i) {
    const uint32_t one = __builtin_bit_cast(uint32_t, x[i]) & 0x7fffffffu;
    bits = one > bits ? one : bits;
  }
  return __builtin_bit_cast(float, bits);
}
inline float largest(const Bfloat16* x, int64 count) {
  uint16_t bits = 0;
#pragma omp simd reduction(max : bits)
  for (int64 i = 0; i < count; ++i) {
    const uint16_t one = x[i].bits & 0x7fff;
    bits = one > bits ? one : bits;
  }
  return loaded(Bfloat16{bits});
}

template <class T>
CodedToken quantize(const void* x_, int64 count, int8_t* codes) {
  constexpr float kHalfRange = 127.5f, kLeast = 1.1920929e-7f;
  const auto* x = static_cast<const T*>(x_);
  float scale = rounded(largest(x, count) / kHalfRange, x);
  scale = scale < kLeast ? kLeast : scale;
  const float inverse = 1 / scale;
  int32_t total = 0;
#pragma omp simd reduction(+ : total)
  for (int64 i = 0; i < count; ++i) {
    float code = __builtin_rintf(loaded(x[i]) * inverse);
    code = code >= -128 ? code : -128;  // NaN too
    code = code <= 127 ? code : 127;
    codes[i] = int8_t(int32_t(code));
    total += codes[i];
  }
  return {scale, total};
}

// ------------------------------------------------------------------------- rotated

typedef float Eight __attribute__((vector_size(32)));
typedef Eight StoredEight __attribute__((aligned(4), may_alias));

// Number i is the one at i ^ mask.
template <int mask>
inline Eight exchanged(Eight x) {
  return __builtin_shufflevector(x, x, 0 ^ mask, 1 ^ mask, 2 ^ mask, 3 ^ mask, 4 ^ mask, 5 ^ mask,
                                 6 ^ mask, 7 ^ mask);
}

// Half the sum of four, minus the opposite number. Sums are of pairs first, as in rotated().
inline void rotate_sixteen(float* x) {
  // not auto, which would forget the alignment
  StoredEight* const low = reinterpret_cast<StoredEight*>(x);
  StoredEight* const high = reinterpret_cast<StoredEight*>(x + 8);
  const auto neighbours = [](Eight v) {
    const Eight pairs = v + exchanged<1>(v);
    return (pairs + exchanged<2>(pairs)) * 0.5f - exchanged<3>(v);
  };
  const Eight a = neighbours(*low), b = neighbours(*high);
  const Eight half = ((a + exchanged<4>(a)) + (b + exchanged<4>(b))) * 0.5f;
  *low = half - exchanged<4>(b);
  *high = half - exchanged<4>(a);
}

inline void rotate_four(float* x) {
  const float a = x[0], b = x[1], c = x[2], d = x[3];
  const float half = ((a + b) + (c + d)) * 0.5f;
  x[0] = half - d;
  x[1] = half - c;
  x[2] = half - b;
  x[3] = half - a;
}

inline void rotate_apart(float* x, int64 apart) {
#pragma omp simd
  for (int64 i = 0; i < apart; ++i) {
    const float a = x[i], b = x[apart + i], c = x[2 * apart + i], d = x[3 * apart + i];
    const float half = ((a + b) + (c + d)) * 0.5f;
    x[i] = half - d;
    x[apart + i] = half - c;
    x[2 * apart + i] = half - b;
    x[3 * apart + i] = half - a;
  }
}

// One group.
inline void rotate(float* x, int64 together) {
  if (together == 4) return rotate_four(x);
  for (int64 i = 0; i < together; i += 16) rotate_sixteen(x + i);
  for (int64 apart = 16; apart < together; apart *= 4)
    for (int64 i = 0; i < together; i += 4 * apart) rotate_apart(x + i, apart);
}

template <class T>
void widen_rotated(const int8_t* codes, float scale, const RotatedRow& row, void* out_) {
  auto* out = static_cast<T*>(out_);
  for (int64 group = 0; group < row.count; group += row.together) {
#pragma omp simd
    for (int64 i = 0; i < row.together; ++i) row.numbers[i] = float(codes[group + i]) * scale;
    rotate(row.numbers, row.together);
#pragma omp simd
    for (int64 i = 0; i < row.together; ++i) store(out + group + i, row.numbers[i]);
  }
}

template <class T>
CodedToken quantize_rotated(const void* x_, const RotatedRow& row, int8_t* codes) {
  const auto* x = static_cast<const T*>(x_);
  for (int64 group = 0; group < row.count; group += row.together) {
    auto* const numbers = row.numbers + group;
#pragma omp simd
    for (int64 i = 0; i < row.together; ++i) numbers[i] = loaded(x[group + i]);
    rotate(numbers, row.together);
  }
  return quantize<float>(row.numbers, row.count, codes);
}

template <class T>
void scale(const CodeSums& token, void* out_) {
  const auto [sums, token_scale, row_scales, bias, count] = token;
  auto* out = static_cast<T*>(out_);
#pragma omp simd
  for (int64 i = 0; i < count; ++i)
    store(out + i, rounded(float(sums[i]) * token_scale, out) * row_scales[i] + bias[i]);
}

template <class T>
constexpr CodeKernels kOf = {&widen<T>, &quantize<T>, &scale<T>, &widen_rotated<T>,
                             &quantize_rotated<T>};

}  // namespace

extern const CodeKernels kCodesFloat32, kCodesBfloat16;
const CodeKernels kCodesFloat32 = kOf<float>, kCodesBfloat16 = kOf<Bfloat16>;

}  // namespace braid::ops::BRAID_ISA
