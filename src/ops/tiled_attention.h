// The innermost loops of attention by tiles, on operands that lie ready in a core's caches.
// Compiled for Intel AMX only; see rows.cc for why nothing else is in that file.
#pragma once

#include <cstdint>

#include "ops/products.h"

namespace braid::ops {

// Some queries of a head and all of its keys. Widths D are multiples of 32; memory begins at
// multiples of 64 bytes.
struct AttentionBlock {
  // Panels, two bfloat16 numbers a word: of 32 keys, their words one after the other for each two
  // of D; of 32 columns of the values, the same for each two keys.
  const float *keys, *values;
  std::int64_t num_keys, width;
  float scale;  // of scores: log2(e) / sqrt(D)

  const float* queries;  // [rows D/2] words
  std::int64_t rows;     // a multiple of kRows

  // What the queries have seen; totals begin with 0 and `largest` with -inf.
  float* sums;     // [rows D] of values times weights
  float* totals;   // [rows 2 16] parts of the sums of weights, and of weights rounded to bfloat16
  float* largest;  // [rows] scaled score: weights are 2^(score - largest)
};

struct AttentionKernels {
  static constexpr int kRows = 32;   // of a strip: queries that go through the tiles at once
  static constexpr int kPanel = 32;  // keys, or columns of the values, of a panel
  static constexpr int kParts = 16;  // of a total

  // The last panel of keys, and of pairs of keys, is filled up with 0.
  using PackValues = void(const std::uint16_t* row, std::int64_t stride, std::int64_t keys,
                          std::int64_t width, float* panels);
  // Lets the queries see all keys.
  using Attend = void(const AttentionBlock& block);
  // A query's result, rounded once to bfloat16 [D]; gives the sum of its weights.
  using Finish = float(const float* sums, const float* totals, std::int64_t width,
                       std::uint16_t* out);

  ProductKernels::PackHalves* pack_keys;  // 32 of them
  PackValues* pack_values;
  Attend* attend;
  Finish* finish;
};

// Null where there are no tiles.
const AttentionKernels* attention_kernels();

}  // namespace braid::ops
