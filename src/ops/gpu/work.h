// The parameters of GPU kernels: plain numbers and pointers, readable by both gpu.cc, which sees
// tensors, and gpu.cu, which must be C++17.
//
// Strides are in elements. Rows are dense; B batch, L tokens, D head width.
#pragma once

#include <cstdint>

namespace braid::ops::gpu {

// The row of token l of batch b begins at b * batch + l * token.
struct Rows {
  void* data;
  std::int64_t batch, token;
};

// Dense rows of float8 codes, and a scale for each: as QuantizeRows makes them of numbers.
struct RowCodes {
  void* codes;
  float* scales;
};

// y = (x - mean) / sqrt(variance + eps) * (1 + scale) + shift; or codes of y, if there is room.
struct ModulatedNorm {
  Rows x, scale, shift, y;
  RowCodes coded;  // its addresses may be nullptr
  std::int64_t tokens, width;
  float eps;
};

// sum = residual + gate * y, float16 clipped to its finite range
struct GatedResidual {
  Rows residual, gate, y, sum;
  std::int64_t tokens, width;
};

// The norm of that sum too: norm.x is the sum.
struct GatedResidualNorm {
  GatedResidual gated;
  ModulatedNorm norm;
};

// y = part 0 + part 1 + ... + bias, or residual + gate * that, float16 clipped: `count` elements of
// [B L C], from element `begin` on.
struct AddParts {
  static constexpr int kMostParts = 16;
  const void* parts[kMostParts];
  std::int64_t num_parts;
  const void* bias;     // may be nullptr
  Rows residual, gate;  // their data may be nullptr
  void* y;
  std::int64_t tokens, width, begin, count;
};

// y = [left | gelu(right)]
struct JoinedGelu {
  Rows left, right, y;
  std::int64_t tokens, left_width, right_width;
};

// The codes of that.
struct JoinedGeluCodes {
  JoinedGelu joined;
  RowCodes coded;
};

// The heads of some tokens, and where the result goes.
struct HeadsPart {
  Rows x, y;
  std::int64_t x_head, y_head;  // strides
  const void* weight;
  const float *cos, *sin;             // [L D], each value twice
  std::int64_t tokens, heads, count;  // count: heads of all tokens
  std::int64_t first_block;
};

// y = x / rms(x) * weight, then pairs rotated by the angles, of each part. `lanes`, a power of two,
// share a head; a block has threads / lanes heads of one part.
struct NormRotate {
  static constexpr int kMostParts = 4;
  HeadsPart parts[kMostParts];
  std::int64_t num_parts, num_blocks, width;
  int lanes;
  float eps;
};

enum class Codes { kInt8, kFloat8 };

// int8: scale = max(|x|) / 127.5 in x's dtype, at least float32's epsilon; code = round(x / scale)
// float8: scale = max(|x|) / 448, at least the smallest normal number; code = x / scale, rounded
struct QuantizeRows {
  Rows x;
  Codes form;
  void* codes;
  float* scales;
  std::int64_t width;
  int rotated_together;  // neighbours, at most those of a warp's vectors; 0: none
};

// y = code * its row's scale
struct Widen {
  Codes form;
  const void* codes;
  const float* scales;
  void* y;
  std::int64_t width;
};

// y = round(sum * token scale) * row scale + bias
struct ScaleSums {
  const std::int32_t* sums;
  const float *token_scales, *row_scales;
  const float* bias;  // may be nullptr
  void* y;
  std::int64_t width;
};

// y = x + round(dt * v)
struct EulerStep {
  const void *x, *v;
  void* y;
  std::int64_t count;
  float dt;
};

}  // namespace braid::ops::gpu
