// Flash attention (Dao et al., 2022) by the panels of matrix products, in float32. Compiled several
// times, for different instruction sets and into different namespaces (BRAID_ISA), with the vectors
// of that set; see rows.cc.
#include "ops/kernels/attention_kernels.h"

#include <stdint.h>

#include "ops/kernels/vectors/panels.h"

#include BRAID_VECTORS

#include "ops/kernels/vectors/softmax.h"

namespace braid::ops::BRAID_ISA {

extern const ProductKernels kProducts;

namespace {

constexpr int64 kColumns = 2 * kLanes;  // of a panel, as in products.cc
// A strip, its scores and a panel fit in the L1 cache.
constexpr int64 kRows = (24 + kTileRows - 1) / kTileRows * kTileRows;
// Keys a strip processes at once. Rows of scores are padded so as not to share a few cache sets.
constexpr int64 kKeys = 128, kStride = kKeys + 16;
static_assert(32 % kColumns == 0 && kKeys % kColumns == 0 && kStride % kLanes == 0);
static_assert(kLanes <= AttentionKernels::kParts);

void pack_values(const uint16_t* row, int64 stride, int64 keys, int64 width, float* panels) {
  for (int64 key = 0; key < keys; ++key)
    for (int64 d = 0; d < width; d += 8)
      *(Eight*)(panels + (d / kColumns * keys + key) * kColumns + d % kColumns) =
          widened(*(const EightHalves*)(row + key * stride + d));
}

// A strip of queries and some keys.
struct Part {
  int64 row, key, keys;
  float* scores;  // [kRows kStride]; later holds the weights
};

int64 whole_panels(int64 keys) { return (keys + kColumns - 1) / kColumns * kColumns; }

// sums += x panel, for the rows of a strip.
void add_products(const float* x, int64 x_stride, const float* panel, int64 depth, float* sums,
                  int64 sums_stride) {
  for (int64 m = 0; m < kRows; m += kTileRows)
    kProducts.multiply_halves(x + m * x_stride, x_stride, kTileRows, panel, depth,
                              sums + m * sums_stride, sums_stride);
}

// scores = Q K^T
void multiply_by_keys(const AttentionBlock& b, const Part& part) {
  __builtin_memset(part.scores, 0, kRows * kStride * sizeof(float));
  for (int64 n = 0; n < part.keys; n += kColumns)
    add_products(b.queries + part.row * b.width, b.width, b.keys + (part.key + n) * b.width,
                 b.width, part.scores + n, kStride);
}

// Turns a query's scores into weights and rescales its sums and totals to the largest score.
void weigh_row(const AttentionBlock& b, const Part& part, int64 m) {
  auto* const scores = part.scores + m * kStride;
  const auto whole = whole_panels(part.keys), row = part.row + m;
  auto* const kept = (Floats*)(b.totals + row * 2 * AttentionKernels::kParts);
  auto* const largest = b.largest + row;
  Floats totals[2] = {kept[0], kept[1]};
  fill_up(scores, seen_in_part(b, part, row), whole);
  const auto factor = lift(largest, largest_score<Floats>(scores, whole) * b.scale, totals);
  if (part.key > 0 && factor != 1)
    for (int64 d = 0; d < b.width; d += kLanes) *(Floats*)(b.sums + row * b.width + d) *= factor;
  const Floats scale = Floats{} + b.scale, offset = Floats{} - finite(*largest);
  for (int64 n = 0; n < whole; n += kColumns)
    for (int64 i = 0; i < 2; ++i) {
      auto& some = *(Floats*)(scores + n + i * kLanes);
      some = power_of_2(some * scale + offset);
      totals[i] += some;
    }
  kept[0] = totals[0];
  kept[1] = totals[1];
}

// sums += P V; for the first keys there are no sums yet.
void add_values(const AttentionBlock& b, const Part& part) {
  auto* const sums = b.sums + part.row * b.width;
  if (part.key == 0) __builtin_memset(sums, 0, kRows * b.width * sizeof(float));
  for (int64 d = 0; d < b.width; d += kColumns)
    add_products(part.scores, kStride, b.values + d * b.num_keys + part.key * kColumns, part.keys,
                 sums + d, b.width);
}

// All strips process a block of keys while it is in the L2 cache, then move on to the next.
void attend(const AttentionBlock& b) {
  alignas(64) float scores[kRows * kStride];
  for (int64 key = 0; key < seen_by(b, b.rows - 1); key += kKeys)
    for (int64 row = 0; row < b.rows; row += kRows) {
      const auto rest = seen_by(b, row + kRows - 1) - key;
      if (rest <= 0) continue;
      const Part part{
          .row = row, .key = key, .keys = rest < kKeys ? rest : kKeys, .scores = scores};
      multiply_by_keys(b, part);
      for (int64 m = 0; m < kRows; ++m) weigh_row(b, part, m);
      add_values(b, part);
    }
}

float finish(const float* sums, const float* totals, int64 width, uint16_t* out) {
  const auto* const both = (const Floats*)totals;
  const auto total = total_of(both[0] + both[1]), inverse = 1 / total;
  alignas(64) float scaled[32];
  for (int64 d = 0; d < width; d += 32) {
    for (int i = 0; i < 32; ++i) scaled[i] = sums[d + i] * inverse;
    kProducts.narrow(scaled, 32, out + d);
  }
  return total;
}

}  // namespace

extern const AttentionKernels kAttention;
const AttentionKernels kAttention = {
    .rows = kRows,
    .products = &kProducts,
    .pack_values = &pack_values,
    .attend = &attend,
    .finish = &finish,
};

}  // namespace braid::ops::BRAID_ISA
