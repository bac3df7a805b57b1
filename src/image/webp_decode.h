// WebP in. Wraps libwebp.
#pragma once

#include <string>
#include <string_view>

#include "image/over_white.h"

namespace braid {

// The pixels of a WebP as RGB over white, upright as its EXIF data say. Throws InputError naming
// `source` when the file is damaged, cut short, animated or has more than `max_pixels`.
Pixels decode_webp(std::string_view webp, const std::string& source, std::uint64_t max_pixels,
                   Flatten& flatten = over_white);

}  // namespace braid
