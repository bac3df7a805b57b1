// Reads a user's pictures, in any supported format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/inputs.h"
#include "image/png.h"

namespace braid {

// The pixels of a PNG, JPEG or WebP as RGB over white, or as `flatten` makes them, upright
// according to its EXIF data, or else its XMP data. Colour profiles are ignored. Throws InputError
// naming `source` for anything else, for animations, and for files that are damaged, truncated or
// exceed `max_pixels`, before allocating memory for them.
Pixels decode_picture(std::string_view bytes, const std::string& source,
                      std::uint64_t max_pixels = kMaxPixels, Flatten& flatten = over_white);

// The same for a picture whose black and white mean something: a mask, or one that a model follows.
// Its transparency is ignored, as by diffusers, which uses Pillow's convert().
Pixels decode_meaning(std::string_view bytes, const std::string& source,
                      std::uint64_t max_pixels = kMaxPixels);

// Reads the header only. Throws InputError naming `source` for anything but PNG, JPEG and WebP.
StoredSize stored_size(std::string_view bytes, const std::string& source);

// Whether the file is one of those that Pillow opens as RGBA: a PNG with four channels, or a WebP,
// which may also be opaque. Throws InputError naming `source` for a damaged PNG.
bool may_store_rgba(std::string_view bytes, const std::string& source);

// The transparency of each pixel as grey, white for fully transparent; nullopt for an opaque
// picture. Throws as decode_picture().
std::optional<Pixels> decode_transparency(std::string_view bytes, const std::string& source,
                                          std::uint64_t max_pixels = kMaxPixels);

// The file's record of how it was made, with Braid's keys: the text of a PNG, the user's comment of
// a JPEG or WebP. Empty if there is none. Throws InputError for anything else and for a damaged
// PNG. Texts of Braid's own come without the web UI's lines beside them.
PngText read_picture_text(std::string_view bytes, const std::string& source);
// All that can be read of a PNG's text, as readable_png_text(); of other files, the same.
PngText readable_picture_text(std::string_view bytes, const std::string& source);

}  // namespace braid
