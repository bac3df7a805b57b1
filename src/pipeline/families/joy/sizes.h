// The sizes that JoyAI-Image-Edit draws, and what becomes of references.
#pragma once

#include "braid/inputs.h"
#include "pipeline/picture_size.h"

namespace braid {

// Of the sizes that it was trained for, of about a megapixel and sides of multiples of 64, the one
// nearest in height to width.
PictureSize joy_size(PictureSize asked);

// Scaled to cover `size`, bilinearly; the middle.
Pixels joy_cover(const Pixels& picture, PictureSize size);

}  // namespace braid
