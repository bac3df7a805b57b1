// The pictures that FLUX.2 looks at.
#pragma once

#include "nn/predict.h"
#include "pipeline/families/flux2/flux2.h"

namespace braid {

// References of at least 64 pixels per side and an aspect ratio of at most 8. Larger ones are
// scaled down to 1024 x 1024 pixels, then centre-cropped to multiples of `multiple`. Klein can also
// redraw parts of an initial picture.
PicturesTaken flux2_pictures(Flux2Kind kind, int multiple);

// References as an input without text and noise.
DenoiserInput flux2_references_alone(const std::vector<Tokens>& references,
                                     std::int64_t text_width);

}  // namespace braid
