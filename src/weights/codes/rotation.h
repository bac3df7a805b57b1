// Weights whose neighbours were rotated together before quantizing (ConvRot), so that no column has
// larger numbers than others.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/memory.h"

namespace braid {

using at::Tensor;

// Rotates each `together` neighbours (a power of 4) of a row [.. R C], by the product R of Hadamard
// matrices of 4 with equal row sums. R is symmetric and its own inverse, so that numbers are
// rotated back alike, and x (W R)^T = (x R) W^T.
Tensor rotated(const Tensor& numbers_RC, std::int64_t together);

// The form that a file's int8 codes of rotated numbers are kept in where `asked` is asked for. They
// are made for tokens in 8 bits: only kInt8 and kInt8V1 ask for the numbers they stand for.
Quantize form_of_rotated(Quantize asked);

// Whether these codes then multiply tokens in 8 bits, where the device can.
bool keeps_rotated_codes(Quantize asked);

}  // namespace braid
