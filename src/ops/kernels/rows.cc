// Compiled several times, for different instruction sets and into different namespaces (BRAID_ISA).
// Everything here is local, and no header with inline functions of other namespaces is included:
// the linker would keep one copy of each, possibly one that older machines cannot run.
#include "ops/kernels/rows.h"

#include BRAID_VECTORS

#include "ops/kernels/vectors/loops.h"

namespace braid::ops::BRAID_ISA {
namespace {

// x - mean, squared and summed.
template <class T>
float squared_deviations(const T* x, float mean, int64 width) {
  return sum_of(width, [=](int64 i, auto where) {
    const auto deviation = take(x + i, where) - mean;
    return deviation * deviation;
  });
}

template <class T>
float sum(const T* x, int64 width) {
  return sum_of(width, [=](int64 i, auto where) { return take(x + i, where); });
}

template <class T>
void modulated_norm(const void* x_, const void* scale_, const void* shift_, void* y_, int64 width,
                    float eps) {
  const auto *x = static_cast<const T*>(x_), *scale = static_cast<const T*>(scale_),
             *shift = static_cast<const T*>(shift_);
  auto* y = static_cast<T*>(y_);
  const float mean = sum(x, width) / float(width);
  const float squares = squared_deviations(x, mean, width);
  const float inverse = 1 / __builtin_sqrtf(squares / float(width) + eps);
  for_each_run(width, [=](int64 i, auto where) {
    fetch(x + width + i, where);
    const auto normed = (take(x + i, where) - mean) * inverse;
    give(normed * (1 + take(scale + i, where)) + take(shift + i, where), y + i, where);
  });
}

template <class T>
void gated_residual(const void* residual_, const void* gate_, const void* y_, void* out_,
                    int64 width) {
  const auto *residual = static_cast<const T*>(residual_), *gate = static_cast<const T*>(gate_),
             *y = static_cast<const T*>(y_);
  auto* out = static_cast<T*>(out_);
  for_each_run(width, [=](int64 i, auto where) {
    give(take(residual + i, where) + take(gate + i, where) * take(y + i, where), out + i, where);
  });
}

// e^x for x in [-87, 87]: 2^n e^r with |r| <= ln(2) / 2. e^r is its Taylor series to r^7 / 7!,
// whose remainder is below half a unit in the last place.
// Adding kMagic rounds to a whole number n and puts n + 127 into the last bits.
template <class V>
inline V exponential(V x) {
  constexpr float kMagic = 3 * (1 << 22) + 127;
  const V shifted = x * 1.44269504f + kMagic;
  const V n = shifted - kMagic;
  const V r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // ln(2) in two parts
  V e = r * (1 / 5040.0f) + 1 / 720.0f;
  e = e * r + 1 / 120.0f;
  e = e * r + 1 / 24.0f;
  e = e * r + 1 / 6.0f;
  e = e * r + 0.5f;
  e = e * r + 1;
  e = e * r + 1;
  return e * power_in(shifted);
}

// 2^x for x in [-126, 126], to 2e-7: n + 127 is in the last bits of x + kMagic.
template <class V>
inline V nearly_power_of_2(V x) {
  constexpr float kMagic = 3 * (1 << 22) + 127;
  const V shifted = x + kMagic;
  return power_of_fraction(x - (shifted - kMagic)) * power_in(shifted);
}

// Rows of bfloat16 take powers of 2, as their rounding hides the last bits: e^x is 2^(x kPerE).
template <class T>
constexpr float kPerE = sizeof(T) == sizeof(float) ? 1 : 1.44269504f;

// x / (1 + e^(power / kPerE)) for a row of the type of `y`.
template <class V>
inline V damped(const float*, V x, V power) {
  return x / (1 + exponential(clamped(power, -87, 87)));
}
template <class V>
inline V damped(const Bfloat16*, V x, V power) {
  return x * nearly_inverse(1 + nearly_power_of_2(clamped(power, -126, 126)));
}

// z / (1 + e^-z)
template <class T, class V>
inline V silu(const T* y, V z) {
  return damped(y, z, z * -kPerE<T>);
}

// x / 2 (1 + tanh(u)) = x / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
template <class T, class V>
inline V gelu_of(const T* y, V x) {
  constexpr float kScale = -2 * 0.797884561f * kPerE<T>;
  return damped(y, x, x * (kScale + kScale * 0.044715f * (x * x)));
}

template <class T>
void gelu(const void* x_, void* y_, int64 count) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<T*>(y_);
  for_each_run(count,
               [=](int64 i, auto where) { give(gelu_of(y, take(x + i, where)), y + i, where); });
}

// 1 / sqrt(mean(x^2) + eps)
template <class T>
float inverse_rms(const T* x, int64 width, float eps) {
  const float squares = sum_of(width, [=](int64 i, auto where) {
    const auto number = take(x + i, where);
    return number * number;
  });
  return 1 / __builtin_sqrtf(squares / float(width) + eps);
}

// Calls body(x, y, count) for groups of at most kMost heads, whose tables are loaded once.
template <class T, int64 kMost, class Body>
void for_each_group(const HeadRows& heads, Body body) {
  for (int64 first = 0; first < heads.count; first += kMost) {
    const auto rest = heads.count - first;
    body(static_cast<const T*>(heads.x) + first * heads.x_step,
         static_cast<T*>(heads.y) + first * heads.y_step, rest < kMost ? rest : kMost);
  }
}

// The root at the end of a head's sum takes as long as half of the head. Those of a group overlap.
template <class T>
void norm_rotate(const HeadRows& heads, const float* weight, const float* cos, const float* sin,
                 float eps) {
  constexpr int64 kMost = 4;
  const auto width = heads.width, x_step = heads.x_step, y_step = heads.y_step;
  const auto to_next = heads.to_next;
  for_each_group<T, kMost>(heads, [=](const T* x, T* y, int64 count) {
    float inverses[kMost];
    for (int64 h = 0; h < count; ++h) inverses[h] = inverse_rms(x + h * x_step, width, eps);
    for_each_run<Pair<Vector>>(width, [&](int64 i, auto where) {
      const auto weights = take_beside(x, weight + i, where);
      const auto c = take_beside(x, cos + i, where);
      const auto s = first_negated(take_beside(x, sin + i, where));
      for (int64 h = 0; h < count; ++h) {
        fetch(x + to_next + h * x_step + i, where);
        const auto normed = take(x + h * x_step + i, where) * inverses[h] * weights;
        give(normed * c + swapped(normed) * s, y + h * y_step + i, where);
      }
    });
  });
}

template <class T>
void moments(const void* x_, int64 width, float* mean_, float* squares_) {
  const auto* x = static_cast<const T*>(x_);
  *mean_ = sum(x, width) / float(width);
  *squares_ = squared_deviations(x, *mean_, width);
}

template <class T>
void biased(const float* x, float bias, const void* residual_, void* y_, int64 width) {
  const auto* residual = static_cast<const T*>(residual_);
  auto* y = static_cast<T*>(y_);
  if (residual)
    for_each_run(width, [=](int64 i, auto where) {
      put(get(x + i, where) + bias + get(residual + i, where), y + i, where);
    });
  else
    for_each_run(width, [=](int64 i, auto where) { put(get(x + i, where) + bias, y + i, where); });
}

template <class T, class Y>
inline void affine_silu_of(const T* x, float scale, float shift, Y* y, int64 width) {
  for_each_run(width, [=](int64 i, auto where) {
    if constexpr (sizeof(T) == sizeof(Y))
      give(silu(y, take(x + i, where) * scale + shift), y + i, where);
    else
      put(silu(y, get(x + i, where) * scale + shift), y + i, where);
  });
}

// The end of a run is computed as a whole vector, part of it a second time: one number takes as
// long as a vector.
template <class Run>
inline void for_whole_vectors(int64 width, const Run& run) {
  if (width < kLanes) return run(0, width);
  run(0, width / kLanes * kLanes);
  run(width - kLanes, kLanes);
}

template <class T, class Y>
void affine_silu(const void* x_, float scale, float shift, void* y_, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<Y*>(y_);
  for_whole_vectors(width, [=](int64 first, int64 count) {
    affine_silu_of(x + first, scale, shift, y + first, count);
  });
}

template <class T>
void add_squares(const void* x_, float* sums, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  for_each_run(width, [=](int64 i, auto where) {
    const auto value = get(x + i, where);
    put(get(sums + i, where) + value * value, sums + i, where);
  });
}

template <class T, class Y>
inline void pixel_silu_of(const T* x, const float* lengths, float scale, Y* y, int64 width) {
  for_each_run(width, [=](int64 i, auto where) {
    if constexpr (sizeof(T) == sizeof(Y))
      give(silu(y, take(x + i, where) / take_beside(x, lengths + i, where) * scale), y + i, where);
    else
      put(silu(y, get(x + i, where) / get(lengths + i, where) * scale), y + i, where);
  });
}

template <class T, class Y>
void pixel_silu(const void* x_, const float* lengths, float scale, void* y_, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<Y*>(y_);
  for_whole_vectors(width, [=](int64 first, int64 count) {
    pixel_silu_of(x + first, lengths + first, scale, y + first, count);
  });
}

inline Bfloat16 in_form_of(const Bfloat16*, Bfloat16 x) { return x; }
inline float in_form_of(const float*, float x) { return x; }
inline float in_form_of(const float*, Bfloat16 x) {
  return __builtin_bit_cast(float, uint32_t(x.bits) << 16);
}

template <class T>
void widened(const void* x_, float* y, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  for_each_run(width, [=](int64 i, auto where) { put(get(x + i, where), y + i, where); });
}

template <class T, class Y>
void doubled(const void* x_, void* y_, int64 width) {
  const auto* x = static_cast<const T*>(x_);
  auto* y = static_cast<Y*>(y_);
#pragma omp simd
  for (int64 i = 0; i < width; ++i) y[2 * i] = y[2 * i + 1] = in_form_of(y, x[i]);
}

template <class T>
void swiglu(const void* gate_, const void* up_, void* y_, int64 width) {
  const auto *gate = static_cast<const T*>(gate_), *up = static_cast<const T*>(up_);
  auto* y = static_cast<T*>(y_);
  for_each_run(width, [=](int64 i, auto where) {
    give(silu(y, take(gate + i, where)) * take(up + i, where), y + i, where);
  });
}

template <class T>
void rms_norm(const void* x_, const void* weight_, void* y_, int64 width, float eps) {
  const auto *x = static_cast<const T*>(x_), *weight = static_cast<const T*>(weight_);
  auto* y = static_cast<T*>(y_);
  const float inverse = inverse_rms(x, width, eps);
  for_each_run(width, [=](int64 i, auto where) {
    fetch(x + width + i, where);
    give(take(x + i, where) * inverse * take(weight + i, where), y + i, where);
  });
}

template <class T>
void llama_rms_norm(const void* x_, const void* weight_, void* y_, int64 width, float eps) {
  const auto *x = static_cast<const T*>(x_), *weight = static_cast<const T*>(weight_);
  auto* y = static_cast<T*>(y_);
  const float inverse = inverse_rms(x, width, eps);
  for_each_run(width, [=](int64 i, auto where) {
    fetch(x + width + i, where);
    const auto normed = rounded_as(x, take(x + i, where) * inverse);
    give(normed * take(weight + i, where), y + i, where);
  });
}

template <class T>
void zero_centred_rms_norm(const void* x_, const float* weight, const void* scale_,
                           const void* shift_, void* y_, int64 width, float eps) {
  const auto *x = static_cast<const T*>(x_), *scale = static_cast<const T*>(scale_),
             *shift = static_cast<const T*>(shift_);
  auto* y = static_cast<T*>(y_);
  const float inverse = inverse_rms(x, width, eps);
  const auto normed = [=](int64 i, auto where) {
    fetch(x + width + i, where);
    return take(x + i, where) * inverse * (1 + take_beside(x, weight + i, where));
  };
  if (!scale)
    for_each_run(width, [=](int64 i, auto where) { give(normed(i, where), y + i, where); });
  else
    for_each_run(width, [=](int64 i, auto where) {
      give(normed(i, where) * (1 + take(scale + i, where)) + take(shift + i, where), y + i, where);
    });
}

template <class T>
void sigmoid_gated(const void* gate_, const void* up_, void* y_, int64 width) {
  const auto *gate = static_cast<const T*>(gate_), *up = static_cast<const T*>(up_);
  auto* y = static_cast<T*>(y_);
  for_each_run(width, [=](int64 i, auto where) {
    give(damped(y, take(up + i, where), take(gate + i, where) * -kPerE<T>), y + i, where);
  });
}

template <class T, class Angle>
void rotate_halves(const HeadRows& heads, const void* cos_, const void* sin_) {
  const auto *cos = static_cast<const Angle*>(cos_), *sin = static_cast<const Angle*>(sin_);
  const auto x_step = heads.x_step, y_step = heads.y_step, half = heads.width / 2;
  const auto to_next = heads.to_next;
  for_each_group<T, 8>(heads, [=](const T* x, T* y, int64 count) {
    for_each_run<Pair<Vector>>(half, [=](int64 i, auto where) {
      const auto angle = [=](const Angle* row) {
        if constexpr (sizeof(T) == sizeof(Angle))
          return take(row + i, where);
        else
          return take_beside(x, row + i, where);
      };
      const auto c = angle(cos), s = angle(sin);
      for (int64 h = 0; h < count; ++h) {
        const auto* const from = x + h * x_step + i;
        auto* const to = y + h * y_step + i;
        fetch(from + to_next, where);
        fetch(from + half + to_next, where);
        const auto a = take(from, where), b = take(from + half, where);
        give(-(b * s) + a * c, to, where);
        give(a * s + b * c, to + half, where);
      }
    });
  });
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
                            &add_squares<T>,
                            &pixel_silu<T, T>,
                            &pixel_silu<T, float>,
                            &doubled<T, T>,
                            &doubled<T, float>,
                            &widened<T>,
                            &llama_rms_norm<T>,
                            &rotate_halves<T, T>,
                            &rotate_halves<T, float>,
                            &swiglu<T>,
                            &zero_centred_rms_norm<T>,
                            &sigmoid_gated<T>,
                            &rms_norm<T>};

}  // namespace

extern const RowKernels kFloat32, kBfloat16;
const RowKernels kFloat32 = kOf<float>, kBfloat16 = kOf<Bfloat16>;

}  // namespace braid::ops::BRAID_ISA
