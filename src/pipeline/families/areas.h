// Pictures scaled to an area at their own aspect ratio, as pipelines of Qwen's prepare references.
#pragma once

#include "braid/inputs.h"
#include "pipeline/request/picture_size.h"

namespace braid {

// Sides are rounded to multiples of `multiple`; the area is about that of a square of `side`
// pixels.
struct AreaAtRatio {
  double side;
  int multiple;
};

// Throws InputError for a picture that is too narrow for it.
PictureSize size_at_ratio(PictureSize picture, const AreaAtRatio& area);
// Resized to that by Lanczos.
Pixels resized_to(const AreaAtRatio& area, const Pixels& picture);

}  // namespace braid
