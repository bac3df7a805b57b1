// The innermost loops of attention, on operands that lie ready in a core's caches. Compiled once
// for each instruction set (panel_attention.cc) and for Intel AMX (tiled_attention.cc); see rows.cc
// for why nothing else is in those files.
#pragma once

#include <cstdint>

#include "ops/kernels/products.h"

namespace braid::ops {

// Some queries of a head and all of its keys. Widths D are multiples of 32; memory begins at
// multiples of 64 bytes. A word is one number of D widened to float32, or two in bfloat16.
struct AttentionBlock {
  // Panels of keys: for each word of D those of all keys, one after the other. Panels of columns of
  // the values: for each key, or two of them, the words of all columns.
  const float *keys, *values;
  std::int64_t num_keys, width;
  float scale;  // of scores: log2(e) / sqrt(D)

  const float* queries;  // [rows words]
  std::int64_t rows;     // of whole strips

  // What the queries have seen; totals begin with 0 and `largest` with -inf.
  float* sums;     // [rows D] of values times weights
  float* totals;   // [rows 2 16] parts of sums of weights; of pairs also as they multiply
  float* largest;  // [rows] scaled score: weights are 2^(score - largest)
};

struct AttentionKernels {
  static constexpr int kParts = 16;  // of a total

  // The last pair of keys is filled up with 0.
  using PackValues = void(const std::uint16_t* row, std::int64_t stride, std::int64_t keys,
                          std::int64_t width, float* panels);
  // Lets the queries see all keys.
  using Attend = void(const AttentionBlock& block);
  // A query's result, rounded once to bfloat16 [D]; gives the sum of its weights.
  using Finish = float(const float* sums, const float* totals, std::int64_t width,
                       std::uint16_t* out);

  int rows;                        // of a strip: queries that are multiplied at once
  const ProductKernels* products;  // queries are taken as x is, keys and values packed in panels
  PackValues* pack_values;
  Attend* attend;
  Finish* finish;
};

// The best that this machine can run. Null where LibTorch has instructions that ours lack, see
// leads_in_bfloat16().
const AttentionKernels* attention_kernels();

// All that it can run, one after the other from number 0; none after it.
struct NamedAttention {
  const char* name;
  const AttentionKernels* kernels;
};
NamedAttention runnable_attention(int number);

}  // namespace braid::ops
