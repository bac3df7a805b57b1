// Which way up a picture is, as a camera says in its EXIF data.
#pragma once

#include <string_view>

#include "braid/inputs.h"

namespace braid {

// The orientation, 1 to 8, of a TIFF structure: what EXIF data are behind their name. 1, upright,
// for data that say nothing or are damaged.
int exif_orientation(std::string_view tiff);

// Turned and mirrored so that it is upright.
Pixels upright(Pixels picture, int orientation);

}  // namespace braid
