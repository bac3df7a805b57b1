// Eight-bit codes of a matrix's rows, as torchao quantizes (`Int8Tensor`, symmetric, by row).
//
//   scale = max(|w|) / 127.5          of the row, at least float32's epsilon
//   code  = clamp(round(w * (1 / scale)), -128, 127)     half to even
//
// The scale is divided in the weights' dtype. Version 2 then multiplies in float32; version 1 stays
// in the weights' dtype, so its codes differ slightly.
#pragma once

#include "weights/matrix.h"

namespace braid {

// rows_NC floating-point -> codes and scales. `form` has codes; those of kFloat8 are float8.h's.
// Scales are float32 for version 2 and the dynamic form, and in the rows' dtype for version 1.
Matrix quantize_rows(const Tensor& rows_NC, Quantize form);

// The form that a file's codes are kept in where `asked` is asked for: another one than `stored`
// (kInt8, kInt8V1) only to multiply tokens in 8 bits, which takes scales in float32.
Quantize form_of_codes(Quantize stored, Quantize asked);

// The numbers of the whole weight, rounded to `dtype`: code * scale, or as the coding defines, with
// the matrix's own low-rank product and smoothing, but no unmerged adapter.
Tensor dequantize(const Matrix& matrix, at::ScalarType dtype);

}  // namespace braid
