// Lossy files: JPEG and WebP. Wraps libjpeg-turbo and libwebp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace braid {

// Throw InputError for sizes that the format does not support.
void check_jpeg_sides(int width, int height);
void check_webp_sides(int width, int height);

// A segment's 65,535 bytes, less its size and EXIF's name.
constexpr std::size_t kMostJpegExif = 0xffff - 2 - 6;

// Encodes width x height RGB pixels, three bytes each; `quality` is 0 to 100. A JPEG's colours keep
// their full resolution from 90 on. `exif` is a TIFF structure; a JPEG has no room for more than
// kMostJpegExif bytes and then omits it. The same input gives the same bytes. Throws InputError for
// sizes that the format does not support or that do not match `rgb`.
std::string encode_jpeg(int width, int height, std::span<const std::uint8_t> rgb, int quality,
                        std::string_view exif = {});
std::string encode_webp(int width, int height, std::span<const std::uint8_t> rgb, int quality,
                        std::string_view exif = {});
// The same with alpha, four bytes per pixel; alpha is kept without loss.
std::string encode_webp_with_alpha(int width, int height, std::span<const std::uint8_t> rgba,
                                   int quality, std::string_view exif = {});

}  // namespace braid
