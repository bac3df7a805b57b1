// Pictures in another size, equal to Pillow's Image.resize bit for bit.
#pragma once

#include "braid/inputs.h"

namespace braid {

enum class Resampling { kBilinear, kBicubic, kLanczos };

// Sides of 1 or more. A picture of this size comes back as it is.
Pixels resized(const Pixels& picture, int width, int height, Resampling resampling);

// Scaled down, in its own shape, to at most so many pixels, by Lanczos. The sides are cut, not
// rounded.
Pixels with_at_most(const Pixels& picture, std::int64_t pixels);
struct Sides {
  int width, height;
};
Sides sides_with_at_most(Sides sides, std::int64_t pixels);  // that it then has

// `count` rows or columns of what lies beyond an edge of the picture: what Pillow makes,
// bicubically, of a box there that has no extent.
enum class Edge { kTop, kBottom, kLeft, kRight };
Pixels beyond_edge(const Pixels& picture, Edge edge, int count);

// The part from column `left` and row `top` on; it lies within the picture.
Pixels cropped(const Pixels& picture, int left, int top, int width, int height);

}  // namespace braid
