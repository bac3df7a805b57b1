// Loops over 8-bit codes, with the roundings of their definition. Compiled once per instruction
// set; rows.cc says why that file contains nothing else.
#pragma once

#include <cstdint>

#include "ops/kernels/rows.h"

namespace braid::ops {

// Sums of products of a token's codes and the codes of `count` weight rows.
struct CodeSums {
  const std::int32_t* sums;
  float token_scale;
  const float *row_scales, *bias;
  std::int64_t count;
};

// A quantised token: the scale of its codes, and their total.
struct CodedToken {
  float scale;
  std::int32_t total;  // of the codes
};

struct CodeKernels {
  using Widen = void(const std::int8_t* codes, float scale, std::int64_t count, void* out);
  using Quantize = CodedToken(const void* x, std::int64_t count, std::int8_t* codes);
  using Scale = void(const CodeSums& of_token, void* out);

  Widen* widen;        // code * scale
  Quantize* quantize;  // as quantize_rows() of weights/codes/int8.h
  Scale* scale;        // round(sum * token scale) * row scale + bias
};

// The best kernels this machine can run, for results of this type.
const CodeKernels& code_kernels(RowType type);

}  // namespace braid::ops
