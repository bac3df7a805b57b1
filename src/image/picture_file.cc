#include "image/picture_file.h"

#include <algorithm>

#include "base/error.h"
#include "image/jpeg_decode.h"
#include "image/orientation.h"
#include "image/png_chunks.h"
#include "image/webp_decode.h"

namespace braid {
namespace {

using namespace std::literals;

int orientation_of_png(std::string_view png, const std::string& source) {
  for (const auto& chunk : png_chunks(png, source))
    if (chunk.type == "eXIf") return exif_orientation(chunk.bytes);
  return 1;
}

Pixels decode_as(std::string_view bytes, const std::string& source, std::uint64_t max_pixels,
                 Flatten& flatten) {
  if (bytes.starts_with("\x89PNG"sv))
    return upright(decode_png(bytes, source, max_pixels, flatten),
                   orientation_of_png(bytes, source));
  if (bytes.size() >= 12 && bytes.starts_with("RIFF"sv) && bytes.substr(8, 4) == "WEBP"sv)
    return decode_webp(bytes, source, max_pixels, flatten);
  require(!bytes.empty(), source, " should be a picture, it is empty");
  throw InputError(source + " should be a PNG, JPEG or WebP picture, it is none of these");
}

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"sv); }

}  // namespace

Pixels decode_picture(std::string_view bytes, const std::string& source, std::uint64_t max_pixels) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, source, max_pixels);
  return decode_as(bytes, source, max_pixels, over_white);
}

Pixels decode_transparency(std::string_view bytes, const std::string& source,
                           std::uint64_t max_pixels) {
  const auto seen = is_jpeg(bytes) ? Pixels() : decode_as(bytes, source, max_pixels, transparency);
  require(std::ranges::any_of(seen.rgb, [](std::uint8_t value) { return value > 0; }), source,
          " should have transparent pixels, it has none");
  return seen;
}

}  // namespace braid
