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

template <class T>
void scale(const CodeSums& token, void* out_) {
  const auto [sums, token_scale, row_scales, bias, count] = token;
  auto* out = static_cast<T*>(out_);
#pragma omp simd
  for (int64 i = 0; i < count; ++i)
    store(out + i, rounded(float(sums[i]) * token_scale, out) * row_scales[i] + bias[i]);
}

template <class T>
constexpr CodeKernels kOf = {&widen<T>, &quantize<T>, &scale<T>};

}  // namespace

extern const CodeKernels kCodesFloat32, kCodesBfloat16;
const CodeKernels kCodesFloat32 = kOf<float>, kCodesBfloat16 = kOf<Bfloat16>;

}  // namespace braid::ops::BRAID_ISA
