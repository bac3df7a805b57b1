// Products of 8-bit codes by 8-bit codes.
#pragma once

#include "ops/cpu/layer_operands.h"

namespace braid::ops::cpu {

// Quantizes x, one scale per token, and multiplies its codes by the weight's. Where these are of
// rotated numbers, x is rotated alike on the way, in float32.
void multiply_codes(const Layer& l);

}  // namespace braid::ops::cpu
