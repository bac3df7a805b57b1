// The sizes that JoyAI-Image-Edit draws, and how references are resized.
#pragma once

#include "braid/inputs.h"
#include "pipeline/request/picture_size.h"

namespace braid {

// Chooses, of the sizes the model was trained for, about a megapixel with sides in multiples of 64,
// the one with the nearest ratio of height to width.
PictureSize joy_size(PictureSize asked);

// Scaled bilinearly to cover `size`, then centre-cropped.
Pixels joy_cover(const Pixels& picture, PictureSize size);

}  // namespace braid
