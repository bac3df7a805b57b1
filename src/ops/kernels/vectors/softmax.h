// A row-wise softmax on vectors of any length. For files that define larger().
#pragma once

#include <cstdint>
#include <utility>

#include "ops/kernels/vectors/powers.h"

namespace braid::ops::BRAID_ISA {
namespace {

template <class Vector>
constexpr int kLanesOf = sizeof(Vector) / sizeof(float);

// The type of comparison results: integers of the same size.
template <class Vector>
using IntsOf = decltype(Vector{} < Vector{});

// 2^x, clamped to between 2^-126 and 2; for huge scores, rounding of the largest may leave x above
// 0. Computed as 2^n 2^f with |f| <= 1/2. Adding kMagic puts n + 127 into a number's last bits.
template <class Vector>
inline Vector power_of_2(Vector x) {
  constexpr float kMagic = 3 * (1 << 22) + 127;
  x = -larger(Vector{} - 1, -larger(Vector{} - 126, x));
  const Vector shifted = x + kMagic;
  const Vector f = x - (shifted - kMagic);
  return power_of_fraction(f) * (Vector)((IntsOf<Vector>)shifted << 23);
}

// Lane i takes the value of lane i + by.
template <int by, class Vector, int... i>
inline Vector rotated(Vector x, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(x, x, (i + by) % int(sizeof...(i))...);
}
template <int by, class Vector>
inline Vector rotated(Vector x) {
  return rotated<by>(x, std::make_integer_sequence<int, kLanesOf<Vector>>());
}

template <int by, class Vector>
inline float largest_within(Vector x) {
  if constexpr (by == 0)
    return x[0];
  else
    return largest_within<by / 2>(larger(x, rotated<by>(x)));
}
template <class Vector>
inline float largest_of(Vector x) {
  return largest_within<kLanesOf<Vector> / 2>(x);
}

template <int by, class Vector>
inline float total_within(Vector x) {
  if constexpr (by == 0)
    return x[0];
  else
    return total_within<by / 2>(x + rotated<by>(x));
}
template <class Vector>
inline float total_of(Vector x) {
  return total_within<kLanesOf<Vector> / 2>(x);
}

// A score above all previous ones reduces their weights: returns the factor.
template <class Vector, int kCount>
inline float lift(float* largest, float score, Vector (&totals)[kCount]) {
  if (!(score > *largest)) return 1;
  const auto factor = power_of_2(Vector{} + (*largest - score));
  for (auto& total : totals) total *= factor;
  *largest = score;
  return factor[0];
}

// How many keys the query of this row sees.
template <class Block>
inline std::int64_t seen_by(const Block& b, std::int64_t row) {
  const auto seen = b.seen + row * b.seen_more;
  return seen < b.num_keys ? seen : b.num_keys;
}

// How many keys of a part a query sees.
template <class Block, class Part>
inline std::int64_t seen_in_part(const Block& b, const Part& part, std::int64_t row) {
  const auto seen = seen_by(b, row) - part.key;
  return seen < 0 ? 0 : seen < part.keys ? seen : part.keys;
}

// Pads scores with -inf (no key), from `count` on.
inline void fill_up(float* scores, std::int64_t count, std::int64_t whole) {
  for (auto n = count; n < whole; ++n) scores[n] = -__builtin_inff();
}

template <class Vector>
inline float largest_score(const float* scores, std::int64_t count) {
  Vector top = Vector{} - __builtin_inff();
  for (std::int64_t n = 0; n < count; n += kLanesOf<Vector>)
    top = larger(*(const Vector*)(scores + n), top);
  return largest_of(top);
}

// The offset of scores; 0 if all were -inf so far, in which case a larger score makes their weights
// 0.
inline float finite(float largest) { return largest == -__builtin_inff() ? 0 : largest; }

}  // namespace
}  // namespace braid::ops::BRAID_ISA
