// Masks: which part of a picture is redrawn, and how the result is pasted back. Equal to diffusers'
// VaeImageProcessor and Pillow bit for bit.
#pragma once

#include "braid/inputs.h"

namespace braid {

// The luma of ITU-R 601, one byte per pixel.
std::vector<std::uint8_t> luma(const Pixels& picture);

// A part of a picture, in pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
};

bool is_black(const Pixels& mask);

// The smallest region around everything in the mask that is not black, grown by `padding` pixels on
// each side. It is then extended to the nearest possible shape width : height, within the mask.
// Throws InputError if all of it is black.
Region region_to_draw(const Pixels& mask, int width, int height, int padding);

// Scales the region to fit width x height, keeping its aspect ratio. The rest on either side
// repeats the edges.
Pixels filled(const Pixels& picture, const Region& region, int width, int height);

// Puts `drawn` in place of the region, then lays `picture` over it where the mask is black.
Pixels put_back(const Pixels& drawn, const Region& region, const Pixels& picture,
                const Pixels& mask);

}  // namespace braid
