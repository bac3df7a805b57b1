// Decoded pictures with transparency, and their conversion to opaque ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/inputs.h"

namespace braid {

struct RgbaPixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;  // row-major, four bytes per pixel
};

// Pasted on white as Pillow does it, bit for bit.
Pixels over_white(const RgbaPixels& image);
Pixels over_white(const Pixels& picture);
// Colours and alpha; without alpha, if all pixels are opaque.
Pixels with_alpha(const RgbaPixels& image);

// The colours alone, also of pixels that cannot be seen: Pillow's convert("RGB"), and the first
// half of its convert("L").
Pixels without_transparency(const RgbaPixels& image);

// The transparency of each pixel as grey: white is fully transparent.
Pixels transparency(const RgbaPixels& image);

// Three bytes of colours and one of alpha per pixel. Throws InputError unless there are as many of
// each.
std::vector<std::uint8_t> joined_rgba(std::span<const std::uint8_t> rgb,
                                      std::span<const std::uint8_t> alpha);
// One of the functions above.
using Flatten = Pixels(const RgbaPixels&);

// The size that a file's header states; an upright picture may have its sides exchanged.
struct StoredSize {
  std::uint64_t width = 0, height = 0;
};

// Throws InputError naming `source` for a picture of more than `max_pixels`.
void require_few_pixels(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels,
                        const std::string& source);

}  // namespace braid
