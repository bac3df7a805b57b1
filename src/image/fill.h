// Fills the masked part of a picture with the colours around it, as AUTOMATIC1111's web UI does
// with Pillow, bit for bit.
#pragma once

#include "braid/inputs.h"

namespace braid {

// `mask` has the picture's size; its white is filled. Wider and narrower blurs of what is left lie
// on each other, so that colours near an edge come from close by and those far away from afar.
Pixels filled_from_around(const Pixels& picture, const Pixels& mask);

}  // namespace braid
