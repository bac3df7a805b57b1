// Weights of which neighbours were rotated together before they were quantised (ConvRot), so that
// no column has numbers larger than others'.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

using at::Tensor;

// Turns each `together` neighbours of a row [.. R C], a power of 4, back: by the product of
// Hadamard matrices of 4 whose rows have equal sums. It is its own inverse.
Tensor rotated_back(const Tensor& numbers_RC, std::int64_t together);

}  // namespace braid
