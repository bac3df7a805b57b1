// Gaussian blur, equal to Pillow's GaussianBlur bit for bit.
#pragma once

#include "braid/inputs.h"

namespace braid {

constexpr double kMostBlur = 1000;  // pixels

// A standard deviation of `radius` pixels, 0 to kMostBlur: others are taken as the nearest of
// these. 0 leaves the picture unchanged.
Pixels blurred(const Pixels& picture, float radius);

}  // namespace braid
