// Codes that are floating-point numbers of 8 bits themselves, e4m3, as torchao makes them
// (`Float8Tensor`, by row):
//
//   scale = max(|w|) / 448       of the row, in float32, above 0
//   code  = the number next to w / scale, half to even
#pragma once

#include "weights/matrix.h"

namespace braid {

// rows_NC floating-point -> bytes and float32 scales.
Matrix float8_rows(const Tensor& rows_NC);

// How codes of this form lie in memory: int8 or bytes, and what the bytes are.
at::ScalarType type_of_codes(Quantize form);
std::shared_ptr<const Coding> coding_of(Quantize form);

}  // namespace braid
