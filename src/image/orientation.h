// Turns pictures upright.
#pragma once

#include "braid/inputs.h"

namespace braid {

// Rotates and mirrors the picture upright: `orientation` is 1 to 8, as in EXIF data.
Pixels upright(Pixels picture, int orientation);

}  // namespace braid
