// Reads JPEG. Wraps libjpeg-turbo.
#pragma once

#include <string>
#include <string_view>

#include "image/over_white.h"

namespace braid {

// The pixels of a JPEG as RGB, upright according to its EXIF or XMP data. Throws InputError naming
// `source` if the file is damaged, truncated or has more than `max_pixels`.
Pixels decode_jpeg(std::string_view jpeg, const std::string& source, std::uint64_t max_pixels);

// Reads its head alone; throws likewise.
StoredSize jpeg_size(std::string_view jpeg, const std::string& source);

}  // namespace braid
