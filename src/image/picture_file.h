// Pictures that a user has, in whatever form.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/inputs.h"
#include "image/png.h"

namespace braid {

// The pixels of a PNG, JPEG or WebP as RGB over white, upright as its EXIF data say. Colour
// profiles are not followed. Throws InputError naming `source` for anything else, animations, and
// files that are damaged, cut short or of more than `max_pixels`, for which no memory is taken.
Pixels decode_picture(std::string_view bytes, const std::string& source,
                      std::uint64_t max_pixels = kMaxPixels);

// How transparent each of its pixels is, as grey: white where nothing is seen. nullopt where all of
// the picture is seen. Throws as decode_picture().
std::optional<Pixels> decode_transparency(std::string_view bytes, const std::string& source,
                                          std::uint64_t max_pixels = kMaxPixels);

// What the file says of its making, with the keys that Braid writes: the text of a PNG, the user's
// comment of a JPEG or WebP. Empty where it says nothing. Throws InputError for anything else and
// for a damaged PNG.
PngText read_picture_text(std::string_view bytes, const std::string& source);

}  // namespace braid
