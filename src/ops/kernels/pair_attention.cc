// Flash attention by pairs of bfloat16 numbers (Dao et al., 2022). Compiled like pair_products.cc:
// for AVX-512 with VDPBF16PS and, for tests, for any machine with pairs emulated by loops
// (BRAID_VECTORS).
#include BRAID_VECTORS

#include "ops/kernels/vectors/pair_weights.h"
#include "ops/kernels/vectors/pairs.h"

namespace braid::ops::BRAID_ISA {
namespace {

static_assert(kPanel == kPanelColumns);

// Scores of a strip and a panel fit in the L1 cache. With twice the keys sums are loaded and stored
// half as often, which pays more than sharing panels between two strips.
constexpr int kKeys = 8 * kPanel, kStride = stride_of(kKeys);

constexpr auto add = &add_tile<OfPairs, kStripRows>;
constexpr auto set = &add_tile<OfPairs, kStripRows, Sums::kSet>;

// scores = Q K^T
void multiply_by_keys(const AttentionBlock& b, const Part& part) {
  const auto depth = b.width / 2;
  for (int64 n = 0; n < part.keys; n += kPanel)
    set(b.queries + part.row * depth, depth, b.keys + (part.key + n) * depth, depth,
        part.scores + n, kStride);
}

// sums = sums factor + P V; for the first keys there are no sums yet.
void add_values(const AttentionBlock& b, const Part& part) {
  if (part.key > 0) rescale(b, part, kStripRows);
  for (int64 d = 0; d < b.width; d += kPanel) {
    const auto* const panel = b.values + (d * whole_panels(b.num_keys) + part.key * kPanel) / 2;
    auto* const sums = b.sums + part.row * b.width + d;
    const auto multiply = part.key > 0 ? add : set;
    multiply(part.scores, kStride, panel, whole_panels(part.keys) / 2, sums, b.width);
  }
}

// All strips process a block of keys while it is in the L2 cache, then move on to the next.
void attend(const AttentionBlock& b) {
  alignas(64) float scores[kStripRows * kStride], factors[kStripRows];
  for (int64 key = 0; key < seen_by(b, b.rows - 1); key += kKeys)
    for (int64 row = 0; row < b.rows; row += kStripRows) {
      const auto rest = seen_by(b, row + kStripRows - 1) - key;
      if (rest <= 0) continue;
      const Part part{.row = row,
                      .key = key,
                      .keys = rest < kKeys ? rest : kKeys,
                      .scores = scores,
                      .stride = kStride,
                      .factors = factors};
      multiply_by_keys(b, part);
      for (int64 m = 0; m < kStripRows; ++m) weigh_row(b, part, m);
      add_values(b, part);
    }
}

}  // namespace

// `products` must be those of pairs, and outlive the result.
AttentionKernels attention_by_pairs(const ProductKernels& products);
AttentionKernels attention_by_pairs(const ProductKernels& products) {
  return {.rows = kStripRows,
          .products = &products,
          .pack_values = &pack_values,
          .attend = &attend,
          .finish = &finish};
}

}  // namespace braid::ops::BRAID_ISA
