// Reads and writes PNG, with text on how a picture was made. Wraps libpng.
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

constexpr std::uint64_t kMaxPixels = std::uint64_t(1) << 26;  // default limit when reading
constexpr std::size_t kMaxPngText = std::size_t(1) << 20;     // bytes, of all entries together

// Keys of 1 to 79 printable Latin-1 characters, values of any UTF-8 text without NUL; both UTF-8.
using PngText = std::vector<std::pair<std::string, std::string>>;

// Encodes width x height RGB pixels, three bytes each, and `alpha` of one byte each, unless it is
// empty. Text precedes the pixels, as tEXt if it is
// Latin-1, else as iTXt. The same input gives the same bytes. Throws InputError for sizes outside
// 1..65536 or not matching `rgb`, and for text that a PNG cannot hold.
std::string encode_png(int width, int height, std::span<const std::uint8_t> rgb,
                       const PngText& text = {}, std::span<const std::uint8_t> alpha = {});

// The tEXt, zTXt and iTXt entries of a PNG, in order. Does not decode pixels. Throws InputError
// naming `source` if the file is damaged or its text unpacks to more than kMaxPngText.
PngText read_png_text(std::string_view png, const std::string& source);

// The same without entries that are malformed, do not unpack or make the text longer than that; the
// rest is left out from the 17th of these on. Throws InputError naming `source` only if the file is
// damaged.
PngText readable_png_text(std::string_view png, const std::string& source);

// The entries that encode_png() can write.
PngText writable_text(const PngText& text);

// The pixels of any PNG as 8-bit RGB over white; deeper pixels are rounded to 8 bits. Ignores the
// EXIF orientation. Throws InputError naming `source` if the file is damaged, animated or has more
// than `max_pixels`. Memory grows with the file, not with its header's claims.
Pixels decode_png(std::string_view png, const std::string& source,
                  std::uint64_t max_pixels = kMaxPixels, Flatten& flatten = over_white);

}  // namespace braid
