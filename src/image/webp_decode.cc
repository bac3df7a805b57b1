#include "image/webp_decode.h"

#include <webp/decode.h>

#include "base/error.h"
#include "image/orientation.h"

namespace braid {
namespace {

using namespace std::literals;

constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;  // bytes
constexpr auto kExifPrefix = "Exif\0\0"sv;                 // that some programs write, too

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | std::uint8_t(bytes[std::size_t(i)]);
  return value;
}

// A file is a list of chunks: a name, a size, as many bytes and one more where that is odd.
int orientation_of_webp(std::string_view webp) {
  auto rest = webp.substr(kRiffHeader);
  while (rest.size() >= kChunkHeader) {
    const std::size_t size = little_endian(rest.substr(4));
    const auto name = rest.substr(0, 4);
    rest.remove_prefix(kChunkHeader);
    if (size > rest.size()) break;
    auto data = rest.substr(0, size);
    if (name == "EXIF") {
      if (data.starts_with(kExifPrefix)) data.remove_prefix(kExifPrefix.size());
      return exif_orientation(data);
    }
    rest.remove_prefix(std::min(rest.size(), size + size % 2));
  }
  return 1;
}

}  // namespace

Pixels decode_webp(std::string_view webp, const std::string& source, std::uint64_t max_pixels,
                   Flatten& flatten) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(webp.data());
  WebPBitstreamFeatures found;
  require(WebPGetFeatures(data, webp.size(), &found) == VP8_STATUS_OK, source,
          " is a damaged WebP: its header cannot be read");
  require(!found.has_animation, source, " is an animated WebP: give one picture");
  require_few_pixels(std::uint64_t(found.width), std::uint64_t(found.height), max_pixels, source);
  const auto stride = std::size_t(found.width) * 4;
  RgbaPixels picture{found.width, found.height,
                     std::vector<std::uint8_t>(stride * std::size_t(found.height))};
  require(WebPDecodeRGBAInto(data, webp.size(), picture.rgba.data(), picture.rgba.size(),
                             int(stride)) != nullptr,
          source, " is a damaged WebP: it ends too early or its pixels do not unpack");
  return upright(flatten(picture), orientation_of_webp(webp));
}

}  // namespace braid
