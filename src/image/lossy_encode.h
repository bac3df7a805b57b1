// Small files for those who need not have every bit: JPEG and WebP. Wraps libjpeg-turbo and
// libwebp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace braid {

// Of width x height RGB pixels, three bytes each; `quality` is 0 to 100. Colours keep their full
// resolution from a quality of 90 on. `exif` is a TIFF structure; of more than 65,527 bytes, which
// a JPEG has no room for, it is left out there. The same input gives the same bytes. Throws
// InputError for sizes that the format does not have or that `rgb` does not have.
std::string encode_jpeg(int width, int height, std::span<const std::uint8_t> rgb, int quality,
                        std::string_view exif = {});
std::string encode_webp(int width, int height, std::span<const std::uint8_t> rgb, int quality,
                        std::string_view exif = {});

}  // namespace braid
