// Loops over a row's numbers, for files that include BRAID_VECTORS.
#pragma once

#include <stdint.h>

#include "ops/kernels/vectors/numbers.h"

namespace braid::ops::BRAID_ISA {
namespace {

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

// Fetches what the next row has here: while a row is in a cache, memory is idle.
template <class T, class V>
inline void fetch(const T* next, Whole<Pair<V>>) {
  for (int64 byte = 0; byte < int64(sizeof(T)) * kNumbersOf<Pair<V>>; byte += 64)
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
