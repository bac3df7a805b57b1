// A form of weights that no one publishes, for the tests of packed forms: a matrix of six tensors.
//
//   W = ((codes - zeros) * scales + up down) / smoothing
//
// Two codes lie in a byte, the first in the low bits; zeros and scales are of groups of 16 columns.
#pragma once

#include "weights/packed_form.h"

namespace braid::toy {

PackedForm four_bits();

}  // namespace braid::toy
