// Turns the decoder's values into a picture's bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/hooks.h"
#include "ops/ops.h"

namespace braid {

// Decoded values [1 C H W], -1 .. 1, to 0 .. 1 in their dtype, then in float32 to bytes in host
// memory. C is 3, or 4 with alpha.
struct DecodedBytes {
  int width, height;
  std::vector<std::uint8_t> rgb, alpha;  // three bytes per pixel; one, or none
};
DecodedBytes bytes_of_decoded(const Tensor& decoded_1CHW);

// Decoded values, or those of a picture, as [C H W] from 0 to 1.
Tensor unit_values(const Tensor& decoded_1CHW);
Tensor unit_values(const Picture& picture);

// A sentence for the user if not all decoded values are finite.
std::optional<std::string> why_not_finite(const Tensor& decoded_1CHW, int picture);

}  // namespace braid
