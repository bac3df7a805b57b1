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

inline void put(Floats x, float* y, Whole<Vector>) { *(LooseFloats*)y = x; }
inline void put(Floats x, Bfloat16* y, Whole<Vector>) {
  put_halves((Ints)(to_nearest(x) >> 16), &y->bits);
}
inline void put(Pair<Vector> x, Bfloat16* y, Whole<Pair<Vector>>) {
  put_halves((Ints)(to_nearest(x.a) >> 16), (Ints)(to_nearest(x.b) >> 16), &y->bits);
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
// one type.
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
inline void give(Floats x, T* y, Where where) {
  put(x, y, where);
}
inline void give(Pair<Vector> x, Bfloat16* y, Whole<Pair<Vector>>) {
  put_shuffled((Ints)(to_nearest(x.a) >> 16), (Ints)(to_nearest(x.b) >> 16), &y->bits);
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

template <class V>
inline int64 whole(int64 width) {  // how many numbers of a row whole Vs hold
  return width & -int64(kNumbersOf<V>);
}

// What is left of a row. Apart from the loops, whose functions then need no buffers.
template <class Body>
__attribute__((noinline)) void finish_row(Body body, int64 i, int64 count) {
  body(i, Part{count});
}
template <class Term>
__attribute__((noinline)) float sum_of_last(Term term, int64 i, int64 count) {
  const Floats last = term(i, Part{count});
  float sum = 0;
  for (int lane = 0; lane < int(count); ++lane) sum += last[lane];
  return sum;
}

// Fetches what the next row has here, if rows are dense: a row in a cache leaves memory idle.
template <class T>
inline void fetch(const T* next, Whole<Run>) {
  for (int64 byte = 0; byte < int64(sizeof(T)) * kNumbersOf<Run>; byte += 64)
    __builtin_prefetch((const char*)next + byte);
}
template <class T, class Where>
inline void fetch(const T*, Where) {}

// Calls body(i, where) for all numbers of a row: from i on, `where` says how many. Bodies with many
// operands take shorter runs, for which there are registers.
template <class Longest = Run, class Body>
inline void for_each_run(int64 width, Body body) {
  int64 i = 0;
  for (; i < whole<Longest>(width); i += kNumbersOf<Longest>) body(i, Whole<Longest>{});
  for (; i < whole<Vector>(width); i += kLanes) body(i, Whole<Vector>{});
  if (i < width) finish_row(body, i, width - i);
}

// The sum of a row's terms; term(i, where) computes those from i on.
template <class Term>
inline float sum_of(int64 width, Term term) {
  Run sums = {};
  int64 i = 0;
  for (; i < whole<Run>(width); i += kNumbersOf<Run>) sums = sums + term(i, Whole<Run>{});
  Floats all = (sums.a.a + sums.a.b) + (sums.b.a + sums.b.b);
  for (; i < whole<Vector>(width); i += kLanes) all += term(i, Whole<Vector>{});
  const float sum = total_of(all);
  return i < width ? sum + sum_of_last(term, i, width - i) : sum;
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
