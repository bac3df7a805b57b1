// Words of several numbers as stored: two of bfloat16, or four codes. For files compiled once per
// instruction set (BRAID_ISA).
#pragma once

#include <stdint.h>

#include <cstdint>

#include "ops/kernels/products.h"
#include "ops/kernels/vectors/panels.h"

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int64 round_up_words(int64 words) {
  constexpr int kRun = ProductKernels::kRun;
  return (words + kRun - 1) / kRun * kRun;
}

typedef uint32_t LooseWords __attribute__((vector_size(32), aligned(1), may_alias));
typedef int16_t EightShorts __attribute__((vector_size(16), aligned(1), may_alias));

// kNumbers numbers per word, with zeros past the end of the row.
template <class Number, int kNumbers>
struct AsTheyLie {
  const Number* row;
  int64 length;

  void prefetch() const {
    for (int64 i = 0; i < length; i += 64 / sizeof(Number)) __builtin_prefetch(row + i);
  }
  Eight eight(int64 c) const { return (Eight) * (const LooseWords*)(row + kNumbers * c); }
  float one(int64 c) const {
    uint32_t word = 0;
    for (int i = 0; i < kNumbers && kNumbers * c + i < length; ++i) {
      constexpr int kBits = 8 * sizeof(Number);
      const uint32_t number = uint32_t(row[kNumbers * c + i]) & ((1u << kBits) - 1);
      word |= number << (i * kBits);
    }
    return __builtin_bit_cast(float, word);
  }
};
using PairsOfHalves = AsTheyLie<uint16_t, 2>;
using FoursOfCodes = AsTheyLie<int8_t, 4>;

// Two codes per word, times a scale and rounded to bfloat16.
struct PairsOfScaledCodes {
  const int8_t* row;
  int64 length;
  float scale;

  EightWords scaled(EightInts codes) const {
    return (EightWords)rounded(__builtin_convertvector(codes, Eight) * scale);
  }
  Eight eight(int64 c) const {
    const auto pairs = __builtin_convertvector(*(const EightShorts*)(row + 2 * c), EightInts);
    return (Eight)(scaled((pairs << 24) >> 24) >> 16 | scaled(pairs >> 8));
  }
  float one(int64 c) const {
    const auto at = [&](int64 i) { return i < length ? EightInts{} + row[i] : EightInts{}; };
    return __builtin_bit_cast(float, (scaled(at(2 * c)) >> 16 | scaled(at(2 * c + 1)))[0]);
  }
};

template <int kColumns, int kNumbers, class RowAt>
void pack_words(RowAt row_at, int64 count, int64 depth, float* panel) {
  const auto words = (depth + kNumbers - 1) / kNumbers;
  pack<kColumns>(row_at, count, round_up_words(words), depth / (8 * kNumbers) * 8, panel);
}

template <int kNumbers, class Row>
void take_words(Row row, float* words) {
  const auto whole = row.length / (8 * kNumbers) * 8;
  const auto all = round_up_words((row.length + kNumbers - 1) / kNumbers);
  for (int64 c = 0; c < whole; c += 8) *(Eight*)(words + c) = row.eight(c);
  for (int64 c = whole; c < all; ++c) words[c] = row.one(c);
}

template <int kColumns>
void pack_pairs(const uint16_t* row, int64 stride, int64 count, int64 depth, float* panel) {
  pack_words<kColumns, 2>(
      [&](int64 r) {
        return PairsOfHalves{row + r * stride, depth};
      },
      count, depth, panel);
}

template <int kColumns>
void pack_scaled_pairs(const int8_t* row, int64 stride, const float* scales, int64 count,
                       int64 depth, float* panel) {
  pack_words<kColumns, 2>(
      [&](int64 r) {
        return PairsOfScaledCodes{row + r * stride, depth, scales[r]};
      },
      count, depth, panel);
}

inline void take_pairs(const uint16_t* x, int64 depth, float* words) {
  take_words<2>(PairsOfHalves{x, depth}, words);
}

inline void take_fours(const int8_t* x, int64 depth, int32_t* words) {
  take_words<4>(FoursOfCodes{x, depth}, reinterpret_cast<float*>(words));
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
