// Codes that are themselves 8-bit floating-point numbers, e4m3, as torchao quantizes
// (`Float8Tensor`, by row):
//
//   scale = max(|w|) / 448       of the row, in float32, above 0
//   code  = the number nearest to w / scale, half to even
#pragma once

#include "weights/matrix.h"

namespace braid {

// rows_NC floating-point -> bytes and float32 scales.
Matrix float8_rows(const Tensor& rows_NC);

// The storage of a form's codes, int8 or bytes, and of the scales of numbers of `dtype`; and what
// the bytes encode.
at::ScalarType type_of_codes(Quantize form);
at::ScalarType type_of_scales(Quantize form, at::ScalarType dtype);
std::shared_ptr<const QuantFormat> coding_of(Quantize form);

}  // namespace braid
