// Gaussian blur, equal to Pillow's GaussianBlur bit for bit.
#pragma once

#include "braid/inputs.h"

namespace braid {

// A standard deviation of `radius` pixels, 0 or more; 0 leaves the picture unchanged.
Pixels blurred(const Pixels& picture, float radius);

}  // namespace braid
