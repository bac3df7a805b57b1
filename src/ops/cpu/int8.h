// Loops over 8-bit codes for CPUs.
#pragma once

#include <optional>

#include "weights/matrix.h"

namespace braid::ops {

// code * scale, rounded to the dtype of `out_NC`: float32 or bfloat16.
void widen_on_cpu(const Matrix& matrix, const Tensor& out_NC);

// round(sum * token scale) * row scale + bias, each rounding to the dtype of `out_MN`, float32 or
// bfloat16. sums_MN int32, the rest float32.
struct ScaledSums {
  Tensor sums_MN, token_scales_M1, row_scales_N1;
  std::optional<Tensor> bias_N;
};
void scale_on_cpu(const ScaledSums& y, const Tensor& out_MN);

}  // namespace braid::ops
