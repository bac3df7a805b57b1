// Attention weights as pairs of bfloat16 numbers, and the values they multiply. For files that
// define to_halves().
#pragma once

#include <stdint.h>

#include <cstdint>

#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/vectors/softmax.h"
#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = std::int64_t;

constexpr int kPanel = 2 * kTile;  // columns of a panel
constexpr int kParts = AttentionKernels::kParts;
static_assert(kParts == kTile);

// Distance of the rows of scores for `keys` keys: they start in different cache sets.
constexpr int stride_of(int keys) { return keys + kTile; }

constexpr int64 whole_panels(int64 keys) { return (keys + kPanel - 1) / kPanel * kPanel; }

typedef uint16_t SixteenHalves __attribute__((vector_size(32), aligned(2), may_alias));

void pack_values(const uint16_t* row, int64 stride, int64 keys, int64 width, float* panels) {
  const auto pairs = whole_panels(keys) / 2;
  const auto words = [&](int64 key, int64 column) {
    if (key >= keys) return SixteenWords{};
    return __builtin_convertvector(*(const SixteenHalves*)(row + key * stride + column),
                                   SixteenWords);
  };
  for (int64 c = 0; c < pairs; ++c)
    for (int64 d = 0; d < width; d += kTile)
      *(SixteenWords*)(panels + (d / kPanel * pairs + c) * kPanel + d % kPanel) =
          words(2 * c, d) | words(2 * c + 1, d) << 16;
}

// A strip of queries and some keys.
struct Part {
  int64 row, key, keys;
  float* scores;  // of a strip, rows `stride` apart; later holds the weights
  int64 stride;
  float* factors;  // per query, the factor for older sums
};

// Turns a query's scores into weights, two per word, from the start of its row.
__attribute__((noinline)) void weigh_row(const AttentionBlock& b, const Part& part, int64 m) {
  auto* const scores = part.scores + m * part.stride;
  const auto whole = whole_panels(part.keys);
  const auto* const from = (const Sixteen*)scores;
  auto* const to = (SixteenWords*)scores;
  auto* const kept = (Sixteen*)(b.totals + (part.row + m) * 2 * kParts);
  auto* const largest = b.largest + part.row + m;
  Sixteen totals[2] = {kept[0], kept[1]};
  fill_up(scores, seen_in_part(b, part, part.row + m), whole);
  const auto top = largest_score<Sixteen>(scores, whole);
  part.factors[m] = lift(largest, top * b.scale, totals);

  const Sixteen scale = Sixteen{} + b.scale, offset = Sixteen{} - finite(*largest);
  for (int64 i = 0; i < whole / kPanel; ++i) {
    const Sixteen low = power_of_2(from[2 * i] * scale + offset);
    const Sixteen high = power_of_2(from[2 * i + 1] * scale + offset);
    const auto halves = to_halves(low, high);
    totals[0] += low + high;
    totals[1] += (Sixteen)(halves << 16) + (Sixteen)(halves & 0xffff0000u);
    to[i] = halves;
  }
  kept[0] = totals[0];
  kept[1] = totals[1];
}

void rescale(const AttentionBlock& b, const Part& part, int64 rows) {
  for (int64 m = 0; m < rows; ++m) {
    if (part.factors[m] == 1) continue;
    auto* const sums = (Sixteen*)(b.sums + (part.row + m) * b.width);
    for (int64 d = 0; d < b.width / kTile; ++d) sums[d] *= part.factors[m];
  }
}

// Divides by the sum of the rounded weights, the ones the values were multiplied by: they then add
// up to 1, and equal values are preserved.
float finish(const float* sums, const float* totals, int64 width, uint16_t* out) {
  typedef SixteenWords Unaligned __attribute__((aligned(2)));
  const auto *const from = (const Sixteen*)sums, *const both = (const Sixteen*)totals;
  const Sixteen inverse = Sixteen{} + 1 / total_of(both[1]);
  for (int64 i = 0; i < width / kPanel; ++i)
    *(Unaligned*)(out + i * kPanel) = to_halves(from[2 * i] * inverse, from[2 * i + 1] * inverse);
  return total_of(both[0]);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
