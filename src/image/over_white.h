// Pictures with transparency, as a decoder makes them, and without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/inputs.h"

namespace braid {

struct RgbaPixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;  // row-major, four bytes a pixel
};

// As Pillow pastes a picture on a white one, bit for bit.
Pixels over_white(const RgbaPixels& image);

// How transparent each pixel is, as grey: white where nothing of it is seen.
Pixels transparency(const RgbaPixels& image);

// Either of the two.
using Flatten = Pixels(const RgbaPixels&);

// Throws InputError naming `source` for a picture of more than `max_pixels`.
void require_few_pixels(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels,
                        const std::string& source);

}  // namespace braid
