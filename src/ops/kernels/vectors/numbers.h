// Rows of float32 or bfloat16 numbers as vectors of float32, for files that include BRAID_VECTORS.
#pragma once

#include <stdint.h>

#include "ops/kernels/vectors/runs.h"
#include "ops/kernels/vectors/softmax.h"

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = int64_t;

struct Bfloat16 {
  uint16_t bits;
};

typedef float LooseFloats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

// Where numbers lie in a row: as many as V holds, or the first `count` of a vector.
template <class V>
struct Whole {};
struct Part {
  int64 count;
};

inline Floats get(const float* x, Whole<Vector>) { return *(const LooseFloats*)x; }
inline Floats get(const Bfloat16* x, Whole<Vector>) { return (Floats)(halves_at(&x->bits) << 16); }
template <class T, class V>
inline Pair<V> get(const T* x, Whole<Pair<V>>) {
  return {get(x, Whole<V>{}), get(x + kNumbersOf<V>, Whole<V>{})};
}

// Nearest bfloat16, ties to even, in the upper half of each lane's word; the lower half is left.
inline Words to_nearest(Floats x) {
  const Words bits = (Words)x;
  const Words rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return x == x ? rounded : Words{} + 0x7fc00000;  // a carry would leave NaN
}

// Both vectors as bfloat16, in the order of the numbers or as put_shuffled() takes them. Headers of
// vectors that have an instruction for it define functions that are chosen before these templates.
template <class V>
inline void put_nearest(V a, V b, uint16_t* out) {
  put_halves((Ints)(to_nearest(a) >> 16), (Ints)(to_nearest(b) >> 16), out);
}
template <class V>
inline void put_nearest_shuffled(V a, V b, uint16_t* out) {
  put_shuffled((Ints)(to_nearest(a) >> 16), (Ints)(to_nearest(b) >> 16), out);
}

inline void put(Floats x, float* y, Whole<Vector>) { *(LooseFloats*)y = x; }
inline void put(Floats x, Bfloat16* y, Whole<Vector>) {
  put_halves((Ints)(to_nearest(x) >> 16), &y->bits);
}
inline void put(Pair<Vector> x, Bfloat16* y, Whole<Pair<Vector>>) {
  put_nearest((Floats)x.a, (Floats)x.b, &y->bits);
}
template <class T, class V>
inline void put(Pair<V> x, T* y, Whole<Pair<V>>) {
  put(x.a, y, Whole<V>{});
  put(x.b, y + kNumbersOf<V>, Whole<V>{});
}

// The other lanes are zero.
template <class T>
inline Floats get(const T* x, Part part) {
  T all[kLanes] = {};
  for (int64 i = 0; i < part.count; ++i) all[i] = x[i];
  return get(all, Whole<Vector>{});
}
template <class T>
inline void put(Floats x, T* y, Part part) {
  T all[kLanes];
  put(x, all, Whole<Vector>{});
  for (int64 i = 0; i < part.count; ++i) y[i] = all[i];
}

// take() and give() are like get() and put(), but pairs of bfloat16 vectors are in an order of
// lanes of their own, which give() undoes, for fewer instructions: for loops whose rows all have
// one type, and tables of float32 that take_beside() reads in the same order.
template <class T, class Where>
inline Floats take(const T* x, Where where) {
  return get(x, where);
}
inline Pair<Vector> take(const Bfloat16* x, Whole<Pair<Vector>>) {
  Ints a, b;
  get_shuffled(&x->bits, a, b);
  return {(Vector)a, (Vector)b};
}
template <class T, class V>
inline Pair<V> take(const T* x, Whole<Pair<V>>) {
  return {take(x, Whole<V>{}), take(x + kNumbersOf<V>, Whole<V>{})};
}
template <class T, class Where>
inline Floats take_beside(const T*, const float* table, Where where) {
  return get(table, where);
}
inline Pair<Vector> take_beside(const Bfloat16*, const float* table, Whole<Pair<Vector>>) {
  Floats a, b;
  get_shuffled(table, a, b);
  return {a, b};
}
template <class T, class V>
inline Pair<V> take_beside(const T* row, const float* table, Whole<Pair<V>>) {
  return {take_beside(row, table, Whole<V>{}), take_beside(row, table + kNumbersOf<V>, Whole<V>{})};
}
template <class T, class Where>
inline void give(Floats x, T* y, Where where) {
  put(x, y, where);
}
inline void give(Pair<Vector> x, Bfloat16* y, Whole<Pair<Vector>>) {
  put_nearest_shuffled((Floats)x.a, (Floats)x.b, &y->bits);
}
template <class T, class V>
inline void give(Pair<V> x, T* y, Whole<Pair<V>>) {
  give(x.a, y, Whole<V>{});
  give(x.b, y + kNumbersOf<V>, Whole<V>{});
}

// x rounded as a row is stored.
inline Floats rounded_as(const float*, Floats x) { return x; }
inline Floats rounded_as(const Bfloat16*, Floats x) { return (Floats)(to_nearest(x) & 0xffff0000); }
template <class T, class V>
inline Pair<V> rounded_as(const T* row, Pair<V> x) {
  return {rounded_as(row, x.a), rounded_as(row, x.b)};
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
