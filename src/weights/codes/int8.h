// Eight-bit codes of a matrix's rows, as torchao makes them (`Int8Tensor`, symmetric, by row).
//
//   scale = max(|w|) / 127.5          of the row, at least float32's epsilon
//   code  = clamp(round(w * (1 / scale)), -128, 127)     half to even
//
// The scale is divided in the weights' dtype. Version 2 then multiplies in float32; version 1 stays
// in the weights' dtype, where its codes differ a little.
#pragma once

#include "weights/matrix.h"

namespace braid {

// rows_NC floating-point -> codes and scales. `form` has codes; float8.h has those of kFloat8. The
// scales of version 2 and of the dynamic form are float32, those of version 1 have the rows' dtype.
Matrix quantize_rows(const Tensor& rows_NC, Quantize form);

// code * scale, or what a coding says, rounded to `dtype`.
Tensor dequantize(const Matrix& matrix, at::ScalarType dtype);

}  // namespace braid
