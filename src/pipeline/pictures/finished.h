// From the decoder's values to a picture's bytes.
#pragma once

#include <optional>
#include <string>

#include "braid/hooks.h"
#include "ops/ops.h"

namespace braid {

// Decoded values [1 3 H W], -1 .. 1, to 0 .. 1 in their dtype, then in float32 to bytes [H W 3] in
// host memory.
Tensor bytes_of_decoded(const Tensor& decoded_13HW);

// Decoded values, or those of a picture, as [3 H W] from 0 to 1.
Tensor unit_values(const Tensor& decoded_13HW);
Tensor unit_values(const Picture& picture);

// A sentence for the user if not all decoded values are finite.
std::optional<std::string> why_not_finite(const Tensor& decoded_13HW, int picture);

}  // namespace braid
