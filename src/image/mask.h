// Masks: which part of a picture is drawn anew, and how it comes back into its place. All of it
// equals diffusers' VaeImageProcessor and Pillow bit for bit.
#pragma once

#include "braid/inputs.h"

namespace braid {

// The luma of ITU-R 601, a byte a pixel.
std::vector<std::uint8_t> luma(const Pixels& picture);

// A part of a picture, in pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
};

// The smallest region around all of the mask that is not black, `padding` pixels more on each side,
// and then as much as brings it nearest to the shape width : height. It lies within the mask.
// Throws InputError where all is black.
Region region_to_draw(const Pixels& mask, int width, int height, int padding);

// The region in the size width x height. Its shape stays: where it is another one, what is beyond
// its edges on either side is as they are.
Pixels filled(const Pixels& picture, const Region& region, int width, int height);

// `drawn` in the place of the region; over that, the picture where the mask is black.
Pixels put_back(const Pixels& drawn, const Region& region, const Pixels& picture,
                const Pixels& mask);

}  // namespace braid
