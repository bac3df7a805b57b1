// Panels: rows of a weight, transposed in blocks of eight by eight words. For files compiled once
// per instruction set (BRAID_ISA).
#pragma once

#include <stdint.h>

#include <cstdint>

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = std::int64_t;

// Eight numbers on any machine: the unit of transposing panels.
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t EightInts __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t EightWords __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t EightHalves __attribute__((vector_size(16), aligned(2), may_alias));
typedef int8_t EightCodes __attribute__((vector_size(8), aligned(1), may_alias));
typedef int8_t SixteenCodes __attribute__((vector_size(16), aligned(1), may_alias));
typedef int16_t SixteenShorts __attribute__((vector_size(32), aligned(2), may_alias));

inline Eight widened(EightHalves x) {
  return (Eight)(__builtin_convertvector(x, EightWords) << 16);
}

inline EightWords round_up_bits(EightWords bits) { return bits + 0x7fff + ((bits >> 16) & 1); }

// Not for NaN, which cannot come from codes times a finite scale.
inline Eight rounded(Eight x) { return (Eight)(round_up_bits((EightWords)x) & 0xffff0000u); }

inline Eight low_pairs(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
inline Eight high_pairs(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
inline Eight low_fours(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
}
inline Eight high_fours(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
inline Eight low_halves(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
}
inline Eight high_halves(Eight a, Eight b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

// Writes eight rows as columns, `stride` apart.
inline void store_transposed(const Eight (&r)[8], float* to, int64 stride) {
  const Eight a = low_pairs(r[0], r[1]), b = high_pairs(r[0], r[1]);
  const Eight c = low_pairs(r[2], r[3]), d = high_pairs(r[2], r[3]);
  const Eight e = low_pairs(r[4], r[5]), f = high_pairs(r[4], r[5]);
  const Eight g = low_pairs(r[6], r[7]), h = high_pairs(r[6], r[7]);
  const Eight top[4] = {low_fours(a, c), high_fours(a, c), low_fours(b, d), high_fours(b, d)};
  const Eight bottom[4] = {low_fours(e, g), high_fours(e, g), low_fours(f, h), high_fours(f, h)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    *(Eight*)(to + i * stride) = low_halves(top[i], bottom[i]);
    *(Eight*)(to + (i + 4) * stride) = high_halves(top[i], bottom[i]);
  }
}

// A Row returns its words from c on, eight() or one(). `whole`: words available in eights.
template <int kColumns, class Row>
void pack_eight_rows(const Row (&rows)[8], int64 depth, int64 whole, float* panel) {
  int64 c = 0;
  for (; c < whole; c += 8) {
    Eight transposed[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) transposed[r] = rows[r].eight(c);
    store_transposed(transposed, panel + c * kColumns, kColumns);
  }
  for (; c < depth; ++c)
    for (int r = 0; r < 8; ++r) panel[c * kColumns + r] = rows[r].one(c);
}

template <int kColumns, class Row>
void pack_some_rows(const Row* rows, int64 count, int64 depth, float* panel) {
  for (int64 c = 0; c < depth; ++c)
    for (int64 r = 0; r < 8; ++r) panel[c * kColumns + r] = r < count ? rows[r].one(c) : 0;
}

// The first `count` columns are rows, the others 0.
template <int kColumns, class RowAt>
void pack(RowAt row_at, int64 count, int64 depth, int64 whole, float* panel) {
  using Row = decltype(row_at(0));
  for (int64 first = 0; first < kColumns; first += 8) {
    Row rows[8] = {};
    for (int64 r = 0; r < 8 && first + r < count; ++r) rows[r] = row_at(first + r);
    if constexpr (requires { rows[0].prefetch(); })
      for (int64 r = first + 8; r < first + 16 && r < count; ++r) row_at(r).prefetch();
    if (first + 8 <= count)
      pack_eight_rows<kColumns>(rows, depth, whole, panel + first);
    else
      pack_some_rows<kColumns>(rows, count - first, depth, panel + first);
  }
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
