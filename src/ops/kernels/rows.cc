// Compiled several times, for different instruction sets and into different namespaces (BRAID_ISA).
// Everything here is local, and no header with inline functions is included: the linker would keep
// one copy of each, possibly one that older machines cannot run.
#include "ops/kernels/rows.h"

#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = std::int64_t;

inline float from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t to_bits(float x) { return __builtin_bit_cast(uint32_t, x); }

struct Bfloat16 {
  uint16_t bits;
};

inline float load(const float* x, int64 i) { return x[i]; }
inline float load(const Bfloat16* x, int64 i) { return from_bits(uint32_t(x[i].bits) << 16); }
inline void store(float* y, int64 i, float value) { y[i] = value; }
inline void store(Bfloat16* y, int64 i, float value) {
  const uint32_t bits = to_bits(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool is_number = (bits & 0x7fffffff) <= 0x7f800000;
  y[i].bits = uint16_t(is_number ? rounded : 0x7fc0);
}

template <class T>
void modulated_norm(const void* x_, const void* scale_, const void* shift_, void* y_, int64 width,
                    float eps, float* scratch) {
  const auto *x = static_cast<const T*>(x_), *scale = static_cast<const T*>(scale_),
             *shift = static_cast<const T*>(shift_);
  auto* y = static_cast<T*>(y_);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64 i = 0; i < width; ++i) {
    scratch[i] = load(x, i);
    sum += scratch[i];
  }
  const float mean = sum / float(width);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64 i = 0; i < width; ++i) {
    scratch[i] -= mean;
    squares += scratch[i] * scratch[i];
  }
  const float inverse = 1 / __builtin_sqrtf(squares / float(width) + eps);
#pragma omp simd
  for (int64 i = 0; i < width; ++i)
    store(y, i, scratch[i] * inverse * (1 + load(scale, i)) + load(shift, i));
}

template <class T>
void gated_residual(const void* residual_, const void* gate_, const void* y_, void* out_,
                    int64 width) {
  const auto *residual = static_cast<const T*>(residual_), *gate = static_cast<const T*>(gate_),
             *y = static_cast<const T*>(y_);
  auto* out = static_cast<T*>(out_);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) store(out, i, load(residual, i) + load(gate, i) * load(y, i));
}

// e^x for x in [-87, 87]: 2^n e^r with |r| <= ln(2) / 2. e^r is its Taylor series to r^7 / 7!,
// whose remainder is below half a unit in the last place.
inline float exponential(float x) {
  const float n = __builtin_rintf(x * 1.44269504f);
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // ln(2) in two parts
  float e = 1 / 5040.0f;
  e = e * r + 1 / 720.0f;
  e = e * r + 1 / 120.0f;
  e = e * r + 1 / 24.0f;
  e = e * r + 1 / 6.0f;
  e = e * r + 0.5f;
  e = e * r + 1;
  e = e * r + 1;
  return e * from_bits(uint32_t(int32_t(n) + 127) << 23);
}

// x / 2 (1 + tanh(u)) = x / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
template <class T>
void gelu(const void* x_, void* y_, int64 count) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<T*>(y_);
#pragma omp simd
  for (int64 i = 0; i < count; ++i) {
    const float v = load(x, i);
    float z = -2 * 0.797884561f * (v + 0.044715f * v * v * v);
    z = z < -87 ? -87 : z;
    z = z > 87 ? 87 : z;
    store(y, i, v / (1 + exponential(z)));
  }
}

// 1 / sqrt(mean(x^2) + eps)
template <class T>
float inverse_rms(const T* x, int64 width, float eps) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64 i = 0; i < width; ++i) squares += load(x, i) * load(x, i);
  return 1 / __builtin_sqrtf(squares / float(width) + eps);
}

template <class T>
void norm_rotate(const void* x_, const float* weight, const float* cos, const float* sin, void* y_,
                 int64 width, float eps) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<T*>(y_);
  const float inverse = inverse_rms(x, width, eps);
#pragma omp simd
  for (int64 i = 0; i < width / 2; ++i) {
    const float a = load(x, 2 * i) * inverse * weight[2 * i];
    const float b = load(x, 2 * i + 1) * inverse * weight[2 * i + 1];
    store(y, 2 * i, a * cos[2 * i] - b * sin[2 * i]);
    store(y, 2 * i + 1, b * cos[2 * i + 1] + a * sin[2 * i + 1]);
  }
}

template <class T>
void moments(const void* x_, int64 width, float* mean_, float* squares_) {
  const auto* x = static_cast<const T*>(x_);
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64 i = 0; i < width; ++i) sum += load(x, i);
  const float mean = sum / float(width);
#pragma omp simd reduction(+ : squares)
  for (int64 i = 0; i < width; ++i) {
    const float deviation = load(x, i) - mean;
    squares += deviation * deviation;
  }
  *mean_ = mean;
  *squares_ = squares;
}

template <class T>
void biased(const float* x, float bias, const void* residual_, void* y_, int64 width) {
  const auto* residual = static_cast<const T*>(residual_);
  auto* y = static_cast<T*>(y_);
  if (residual) {
#pragma omp simd
    for (int64 i = 0; i < width; ++i) store(y, i, x[i] + bias + load(residual, i));
  } else {
#pragma omp simd
    for (int64 i = 0; i < width; ++i) store(y, i, x[i] + bias);
  }
}

// z / (1 + e^-z)
inline float silu(float z) {
  float power = -z;
  power = power < -87 ? -87 : power;
  power = power > 87 ? 87 : power;
  return z / (1 + exponential(power));
}

template <class T, class Y>
inline void affine_silu_of(const T* x, float scale, float shift, Y* y, int64 width) {
#pragma omp simd
  for (int64 i = 0; i < width; ++i) store(y, i, silu(load(x, i) * scale + shift));
}

// The end of a run is computed as a whole vector, part of it a second time: one number takes as
// long as a vector.
template <class T, class Y>
void affine_silu(const void* x_, float scale, float shift, void* y_, int64 width) {
  constexpr int64 kVector = 16;
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<Y*>(y_);
  if (width < kVector) return affine_silu_of(x, scale, shift, y, width);
  affine_silu_of(x, scale, shift, y, width / kVector * kVector);
  const auto last = width - kVector;
  affine_silu_of(x + last, scale, shift, y + last, kVector);
}

template <class T>
void widened(const void* x_, float* y, int64 width) {
  const auto* x = static_cast<const T*>(x_);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) y[i] = load(x, i);
}

template <class T, class Y>
void doubled(const void* x_, void* y_, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<Y*>(y_);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) {
    store(y, 2 * i, load(x, i));
    store(y, 2 * i + 1, load(x, i));
  }
}

template <class T>
void swiglu(const void* gate_, const void* up_, void* y_, int64 width) {
  const auto *gate = static_cast<const T*>(gate_), *up = static_cast<const T*>(up_);
  auto* y = static_cast<T*>(y_);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) store(y, i, silu(load(gate, i)) * load(up, i));
}

template <class T>
void llama_rms_norm(const void* x_, const void* weight_, void* y_, int64 width, float eps) {
  const auto *x = static_cast<const T*>(x_), *weight = static_cast<const T*>(weight_);
  auto* y = static_cast<T*>(y_);
  const float inverse = inverse_rms(x, width, eps);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) {
    store(y, i, load(x, i) * inverse);
    store(y, i, load(y, i) * load(weight, i));
  }
}

template <class T>
void zero_centred_rms_norm(const void* x_, const float* weight, const void* scale_,
                           const void* shift_, void* y_, int64 width, float eps) {
  const auto *x = static_cast<const T*>(x_), *scale = static_cast<const T*>(scale_),
             *shift = static_cast<const T*>(shift_);
  auto* y = static_cast<T*>(y_);
  const float inverse = inverse_rms(x, width, eps);
  if (!scale) {
#pragma omp simd
    for (int64 i = 0; i < width; ++i) store(y, i, load(x, i) * inverse * (1 + weight[i]));
    return;
  }
#pragma omp simd
  for (int64 i = 0; i < width; ++i)
    store(y, i, load(x, i) * inverse * (1 + weight[i]) * (1 + load(scale, i)) + load(shift, i));
}

template <class T>
void sigmoid_gated(const void* gate_, const void* up_, void* y_, int64 width) {
  const auto *gate = static_cast<const T*>(gate_), *up = static_cast<const T*>(up_);
  auto* y = static_cast<T*>(y_);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) {
    float power = -load(gate, i);
    power = power < -87 ? -87 : power;
    power = power > 87 ? 87 : power;
    store(y, i, load(up, i) / (1 + exponential(power)));
  }
}

template <class T, class Angle>
void rotate_halves(const void* x_, const void* cos_, const void* sin_, void* y_, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  const auto *cos = static_cast<const Angle*>(cos_), *sin = static_cast<const Angle*>(sin_);
  auto* y = static_cast<T*>(y_);
  const int64 half = width / 2;
#pragma omp simd
  for (int64 i = 0; i < half; ++i) {
    const float a = load(x, i), b = load(x, half + i);
    store(y, i, a * load(cos, i) - b * load(sin, i));
    store(y, half + i, b * load(cos, i) + a * load(sin, i));
  }
}

template <class T>
constexpr RowKernels kOf = {&modulated_norm<T>,
                            &gated_residual<T>,
                            &gelu<T>,
                            &norm_rotate<T>,
                            &moments<T>,
                            &biased<T>,
                            &affine_silu<T, T>,
                            &affine_silu<T, float>,
                            &doubled<T, T>,
                            &doubled<T, float>,
                            &widened<T>,
                            &llama_rms_norm<T>,
                            &rotate_halves<T, T>,
                            &rotate_halves<T, float>,
                            &swiglu<T>,
                            &zero_centred_rms_norm<T>,
                            &sigmoid_gated<T>};

}  // namespace

extern const RowKernels kFloat32, kBfloat16;
const RowKernels kFloat32 = kOf<float>, kBfloat16 = kOf<Bfloat16>;

}  // namespace braid::ops::BRAID_ISA
