// Reads WebP. Wraps libwebp.
#pragma once

#include <string>
#include <string_view>

#include "image/over_white.h"

namespace braid {

// The pixels of a WebP as RGB over white, upright according to its EXIF or XMP data. Throws
// InputError naming `source` if the file is damaged, truncated, an animation of more than one
// frame, or has more than `max_pixels`.
Pixels decode_webp(std::string_view webp, const std::string& source, std::uint64_t max_pixels,
                   Flatten& flatten = over_white);

// Reads its head alone; throws likewise.
StoredSize webp_size(std::string_view webp, const std::string& source);

}  // namespace braid
