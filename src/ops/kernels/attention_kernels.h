// The innermost loops of attention, on operands already in a core's caches. Compiled once per
// instruction set (panel_attention.cc), for VDPBF16PS (pair_attention.cc) and for Intel AMX
// (tiled_attention.cc); rows.cc says why those files contain nothing else.
#pragma once

#include <cstdint>

#include "ops/kernels/products.h"

namespace braid::ops {

// Some queries of a head, and its keys. Widths D are multiples of 32; memory is aligned to
// 64 bytes. A word is one number of D widened to float32, or two in bfloat16.
struct AttentionBlock {
  // Panels of keys: for each word of D, those of all keys, consecutively. Panels of value columns:
  // for each key, or pair of keys, the words of all columns.
  const float *keys, *values;
  std::int64_t num_keys, width;
  // Query m sees the first `seen` + m * `seen_more` keys: at least one, and no more than all.
  std::int64_t seen, seen_more;
  float scale;  // multiplies scores: log2(e) / sqrt(D)

  const float* queries;  // [rows words]
  std::int64_t rows;     // in whole strips

  // Running state of the queries; totals start at 0, `largest` at -inf.
  float* sums;     // [rows D] sums of weighted values
  float* totals;   // [rows 2 16] partial sums of weights; for pairs, also of the rounded ones
  float* largest;  // [rows] largest scaled score: weights are 2^(score - largest)
};

struct AttentionKernels {
  static constexpr int kParts = 16;  // of a total

  // The last pair of keys is padded with 0.
  using PackValues = void(const std::uint16_t* row, std::int64_t stride, std::int64_t keys,
                          std::int64_t width, float* panels);
  // Lets the queries attend to the keys that they see.
  using Attend = void(const AttentionBlock& block);
  // A query's result, rounded once to bfloat16 [D]; returns the sum of its weights.
  using Finish = float(const float* sums, const float* totals, std::int64_t width,
                       std::uint16_t* out);

  int rows;                        // queries per strip, multiplied together
  const ProductKernels* products;  // queries are taken like x, keys and values packed in panels
  PackValues* pack_values;
  Attend* attend;
  Finish* finish;
};

// The best kernels this machine can run. Null if LibTorch has instructions ours lack, see
// leads_in_bfloat16().
const AttentionKernels* attention_kernels();

// Kernels this machine can run, numbered from 0; none past the last.
struct NamedAttention {
  const char* name;
  const AttentionKernels* kernels;
};
NamedAttention runnable_attention(int number);

}  // namespace braid::ops
