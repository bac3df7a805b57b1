// The pictures that FLUX.3 looks at.
#pragma once

#include "pipeline/families/description.h"

namespace braid {

// One reference is kept whole: scaled down until its sides, rounded up to multiples of 16 and of
// `size_multiple`, have 4 million pixels at most, then padded to these with its reflection. Several
// are scaled down to 1024 x 1024 pixels each, then centre-cropped to such multiples.
PicturesTaken flux3_pictures(int size_multiple);

}  // namespace braid
