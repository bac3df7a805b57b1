#include "image/lossy/webp_decode.h"

#include <webp/decode.h>

#include "base/error.h"
#include "image/exif.h"
#include "image/orientation.h"

namespace braid {
namespace {

WebPBitstreamFeatures read_features(std::string_view webp, const std::string& source) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(webp.data());
  WebPBitstreamFeatures found;
  require(WebPGetFeatures(data, webp.size(), &found) == VP8_STATUS_OK, source,
          " is a damaged WebP: its header cannot be read");
  require(!found.has_animation, source, " is an animated WebP: give one picture");
  return found;
}

}  // namespace

StoredSize webp_size(std::string_view webp, const std::string& source) {
  const auto found = read_features(webp, source);
  return {std::uint64_t(found.width), std::uint64_t(found.height)};
}

Pixels decode_webp(std::string_view webp, const std::string& source, std::uint64_t max_pixels,
                   Flatten& flatten) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(webp.data());
  const auto found = read_features(webp, source);
  require_few_pixels(std::uint64_t(found.width), std::uint64_t(found.height), max_pixels, source);
  const auto stride = std::size_t(found.width) * 4;
  RgbaPixels picture{found.width, found.height,
                     std::vector<std::uint8_t>(stride * std::size_t(found.height))};
  require(WebPDecodeRGBAInto(data, webp.size(), picture.rgba.data(), picture.rgba.size(),
                             int(stride)) != nullptr,
          source, " is a damaged WebP: it ends too early or its pixels cannot be decompressed");
  return upright(flatten(picture), orientation_of(exif_of_webp(webp), xmp_of_webp(webp)));
}

}  // namespace braid
