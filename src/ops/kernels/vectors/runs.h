// Several vectors of float32 computed with as if they were one, for files that include
// BRAID_VECTORS. Their steps are interleaved: the chain of steps on one vector is so long that a
// processor's window holds few of them.
#pragma once

#include <stdint.h>

#include <utility>

namespace braid::ops::BRAID_ISA {
namespace {

// Templates take these as arguments: they know no attribute of aliasing.
typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));

// Consecutive numbers of a row, computed with as if they were one vector.
template <class V>
struct Pair {
  V a, b;
};
using Run = Pair<Pair<Vector>>;

template <class V>
constexpr int kNumbersOf = sizeof(V) / sizeof(float);

template <class V>
inline Pair<V> operator+(Pair<V> x, Pair<V> y) {
  return {x.a + y.a, x.b + y.b};
}
template <class V>
inline Pair<V> operator-(Pair<V> x, Pair<V> y) {
  return {x.a - y.a, x.b - y.b};
}
template <class V>
inline Pair<V> operator*(Pair<V> x, Pair<V> y) {
  return {x.a * y.a, x.b * y.b};
}
template <class V>
inline Pair<V> operator/(Pair<V> x, Pair<V> y) {
  return {x.a / y.a, x.b / y.b};
}
template <class V>
inline Pair<V> operator-(Pair<V> x) {
  return {-x.a, -x.b};
}
template <class V>
inline Pair<V> operator+(Pair<V> x, float y) {
  return {x.a + y, x.b + y};
}
template <class V>
inline Pair<V> operator+(float x, Pair<V> y) {
  return {x + y.a, x + y.b};
}
template <class V>
inline Pair<V> operator-(Pair<V> x, float y) {
  return {x.a - y, x.b - y};
}
template <class V>
inline Pair<V> operator*(Pair<V> x, float y) {
  return {x.a * y, x.b * y};
}
template <class V>
inline Pair<V> operator*(float x, Pair<V> y) {
  return {x * y.a, x * y.b};
}

// x, at least `low` and at most `high`; NaN stays.
inline Floats clamped(Floats x, float low, float high) {
  return larger(Floats{} + low, smaller(Floats{} + high, x));
}
template <class V>
inline Pair<V> clamped(Pair<V> x, float low, float high) {
  return {clamped(x.a, low, high), clamped(x.b, low, high)};
}

template <class V>
inline Pair<V> nearly_inverse(Pair<V> x) {
  return {nearly_inverse(x.a), nearly_inverse(x.b)};
}

// 2^n, where n + 127 are the last bits of x.
inline Floats power_in(Floats x) { return (Floats)((Ints)x << 23); }
template <class V>
inline Pair<V> power_in(Pair<V> x) {
  return {power_in(x.a), power_in(x.b)};
}

// (b a) for each pair of lanes (a b).
template <int... i>
inline Floats swapped(Floats x, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(x, x, (i ^ 1)...);
}
inline Floats swapped(Floats x) { return swapped(x, std::make_integer_sequence<int, kLanes>()); }
template <class V>
inline Pair<V> swapped(Pair<V> x) {
  return {swapped(x.a), swapped(x.b)};
}

// (-a b) for each pair of lanes (a b).
template <int... i>
inline Floats first_negated(Floats x, std::integer_sequence<int, i...>) {
  return (Floats)((Words)x ^ Words{(i % 2 ? 0 : 0x80000000)...});
}
inline Floats first_negated(Floats x) {
  return first_negated(x, std::make_integer_sequence<int, kLanes>());
}
template <class V>
inline Pair<V> first_negated(Pair<V> x) {
  return {first_negated(x.a), first_negated(x.b)};
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
