// Flash attention by pairs of bfloat16 numbers (Dao et al., 2022). Compiled like pair_products.cc:
// for AVX-512 with VDPBF16PS and, for tests, for any machine with pairs emulated by loops
// (BRAID_VECTORS).
#include BRAID_VECTORS

#include "ops/kernels/vectors/pair_weights.h"
#include "ops/kernels/vectors/pairs.h"

namespace braid::ops::BRAID_ISA {
namespace {

static_assert(kPanel == kPanelColumns);

// A strip, its scores and a panel fit in the L1 cache.
constexpr int kRows = 2 * kStripRows;

// sums += x panel, for the rows of a strip.
void add_products(const float* x, int64 x_stride, const float* panel, int64 depth, float* sums,
                  int64 sums_stride) {
  for (int64 m = 0; m < kRows; m += kStripRows)
    add_tile<OfPairs, kStripRows>(x + m * x_stride, x_stride, panel, depth, sums + m * sums_stride,
                                  sums_stride);
}

// scores = Q K^T
void multiply_by_keys(const AttentionBlock& b, const Part& part) {
  const auto depth = b.width / 2;
  __builtin_memset(part.scores, 0, kRows * kStride * sizeof(float));
  for (int64 n = 0; n < part.keys; n += kPanel)
    add_products(b.queries + part.row * depth, depth, b.keys + (part.key + n) * depth, depth,
                 part.scores + n, kStride);
}

// sums = sums factor + P V; for the first keys there are no sums yet.
void add_values(const AttentionBlock& b, const Part& part) {
  auto* const sums = b.sums + part.row * b.width;
  if (part.key == 0)
    __builtin_memset(sums, 0, std::size_t(kRows * b.width) * sizeof(float));
  else
    rescale(b, part, kRows);
  for (int64 d = 0; d < b.width; d += kPanel)
    add_products(part.scores, kStride,
                 b.values + (d * whole_panels(b.num_keys) + part.key * kPanel) / 2,
                 whole_panels(part.keys) / 2, sums + d, b.width);
}

// All strips process a block of keys while it is in the L2 cache, then move on to the next.
void attend(const AttentionBlock& b) {
  alignas(64) float scores[kRows * kStride], factors[kRows];
  for (int64 key = 0; key < seen_by(b, b.rows - 1); key += kKeys)
    for (int64 row = 0; row < b.rows; row += kRows) {
      const auto rest = seen_by(b, row + kRows - 1) - key;
      if (rest <= 0) continue;
      const Part part{.row = row,
                      .key = key,
                      .keys = rest < kKeys ? rest : kKeys,
                      .scores = scores,
                      .factors = factors};
      multiply_by_keys(b, part);
      for (int64 m = 0; m < kRows; ++m) weigh_row(b, part, m);
      add_values(b, part);
    }
}

}  // namespace

// `products` must be those of pairs, and outlive the result.
AttentionKernels attention_by_pairs(const ProductKernels& products);
AttentionKernels attention_by_pairs(const ProductKernels& products) {
  return {.rows = kRows,
          .products = &products,
          .pack_values = &pack_values,
          .attend = &attend,
          .finish = &finish};
}

}  // namespace braid::ops::BRAID_ISA
