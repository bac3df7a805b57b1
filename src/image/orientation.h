// Pictures the other way up.
#pragma once

#include "braid/inputs.h"

namespace braid {

// Turned and mirrored so that it is upright: `orientation` is 1 to 8, as EXIF data have it.
Pixels upright(Pixels picture, int orientation);

}  // namespace braid
