// Weights whose neighbours were rotated together before quantising (ConvRot), so that no column has
// larger numbers than others.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

using at::Tensor;

// Rotates each `together` neighbours (a power of 4) of a row [.. R C] back, by the product of
// Hadamard matrices of 4 with equal row sums. It is its own inverse.
Tensor rotated_back(const Tensor& numbers_RC, std::int64_t together);

}  // namespace braid
