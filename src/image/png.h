// PNG in and out, with the text that says how a picture was made. Wraps libpng.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/inputs.h"
#include "image/over_white.h"

namespace braid {

constexpr std::uint64_t kMaxPixels = std::uint64_t(1) << 26;  // that are read unless told otherwise

// Keys of 1 to 79 printable Latin-1 characters, values of any UTF-8 text without NUL; both UTF-8.
using PngText = std::vector<std::pair<std::string, std::string>>;

// A PNG of width x height RGB pixels, three bytes each. Text is written before the pixels: as tEXt
// where it is Latin-1, else as iTXt. The same input gives the same bytes. Throws InputError for
// sizes outside 1..65536 or that `rgb` does not have, and for text that a PNG cannot hold.
std::string encode_png(int width, int height, std::span<const std::uint8_t> rgb,
                       const PngText& text = {});

// The tEXt, zTXt and iTXt entries of a PNG in their order. Pixels are not decoded. Throws
// InputError naming `source` when the file is damaged or its text unpacks to more than 1 MiB.
PngText read_png_text(std::string_view png, const std::string& source);

// The pixels of any PNG as 8-bit RGB over white; more bits are rounded to 8. What its EXIF says of
// its orientation is not followed. Throws InputError naming `source` when the file is damaged,
// animated or has more than `max_pixels`. Memory grows with the file, not with what its header
// claims.
Pixels decode_png(std::string_view png, const std::string& source,
                  std::uint64_t max_pixels = kMaxPixels, Flatten& flatten = over_white);

}  // namespace braid
