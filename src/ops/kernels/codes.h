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

// A quantized token: the scale of its codes, and their total.
struct CodedToken {
  float scale;
  std::int32_t total;  // of the codes
};

// A row of numbers whose neighbours are rotated together, as rotated() of weights/codes/rotation.h.
struct RotatedRow {
  std::int64_t count;     // a multiple of `together`
  std::int64_t together;  // a power of 4
  float* numbers;         // memory for as many, where they are rotated
};

struct CodeKernels {
  using Widen = void(const std::int8_t* codes, float scale, std::int64_t count, void* out);
  using Quantize = CodedToken(const void* x, std::int64_t count, std::int8_t* codes);
  using Scale = void(const CodeSums& of_token, void* out);
  using WidenRotated = void(const std::int8_t* codes, float scale, const RotatedRow& row,
                            void* out);
  using QuantizeRotated = CodedToken(const void* x, const RotatedRow& row, std::int8_t* codes);

  Widen* widen;        // code * scale
  Quantize* quantize;  // as quantize_rows() of weights/codes/int8.h
  Scale* scale;        // round(sum * token scale) * row scale + bias
  // The same of rotated numbers: code * scale, then rotated; x in float32, rotated, then quantized.
  WidenRotated* widen_rotated;
  QuantizeRotated* quantize_rotated;
};

// The best kernels this machine can run, for results of this type.
const CodeKernels& code_kernels(RowType type);

}  // namespace braid::ops
