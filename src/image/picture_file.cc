#include "image/picture_file.h"

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

}  // namespace

Pixels decode_picture(std::string_view bytes, const std::string& source, std::uint64_t max_pixels) {
  if (bytes.starts_with("\x89PNG"sv))
    return upright(decode_png(bytes, source, max_pixels), orientation_of_png(bytes, source));
  if (bytes.starts_with("\xff\xd8\xff"sv)) return decode_jpeg(bytes, source, max_pixels);
  if (bytes.size() >= 12 && bytes.starts_with("RIFF"sv) && bytes.substr(8, 4) == "WEBP"sv)
    return decode_webp(bytes, source, max_pixels);
  require(!bytes.empty(), source, " should be a picture, it is empty");
  throw InputError(source + " should be a PNG, JPEG or WebP picture, it is none of these");
}

}  // namespace braid
