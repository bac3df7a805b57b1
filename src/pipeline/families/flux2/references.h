// The pictures that FLUX.2 looks at.
#pragma once

#include "nn/predict.h"
#include "pipeline/families/flux2/flux2.h"

namespace braid {

// References of at least 64 pixels a side and at most 8 times as long as wide: scaled down to 1024
// x 1024 pixels where they have more, then cut to multiples of `multiple`, the middle. Klein also
// draws parts of an initial picture.
PicturesTaken flux2_pictures(Flux2Kind kind, int multiple);

// References as an input of their own, without text and noise.
DenoiserInput flux2_references_alone(const std::vector<Tokens>& references,
                                     std::int64_t text_width);

}  // namespace braid
