// JPEG in. Wraps libjpeg-turbo.
#pragma once

#include <string>
#include <string_view>

#include "braid/inputs.h"

namespace braid {

// The pixels of a JPEG as RGB, upright as its EXIF data say. Throws InputError naming `source` when
// the file is damaged, cut short or has more than `max_pixels`.
Pixels decode_jpeg(std::string_view jpeg, const std::string& source, std::uint64_t max_pixels);

}  // namespace braid
