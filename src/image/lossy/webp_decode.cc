#include "image/lossy/webp_decode.h"

#include <webp/decode.h>

#include "base/byte_order.h"
#include "base/error.h"
#include "image/exif.h"
#include "image/orientation.h"
#include "image/webp_chunks.h"

namespace braid {
namespace {

struct Stored {
  std::string_view bytes;  // what libwebp decodes: the file, or its only frame
  WebPBitstreamFeatures features = {};
};

bool read_features(Stored& stored) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(stored.bytes.data());
  return WebPGetFeatures(data, stored.bytes.size(), &stored.features) == VP8_STATUS_OK;
}

// The frame of an animation that has but one, as some programs write pictures; empty if there are
// more, or if it is smaller than the canvas (WebP Container Specification).
std::string_view only_frame(std::string_view webp, const WebPBitstreamFeatures& canvas) {
  constexpr std::size_t kFrameHeader = 16;
  std::string_view frame;
  WebpChunks chunks(webp);
  while (const auto chunk = chunks.next()) {
    if (chunk->name != "ANMF") continue;
    if (!frame.empty() || chunk->bytes.size() <= kFrameHeader) return {};
    frame = chunk->bytes;
  }
  if (frame.empty()) return {};
  const auto number = [&](std::size_t at) { return int(little_endian(frame.data() + at, 3)); };
  const bool is_whole = number(0) == 0 && number(3) == 0 && number(6) + 1 == canvas.width &&
                        number(9) + 1 == canvas.height;
  return is_whole ? frame.substr(kFrameHeader) : "";
}

Stored read_head(std::string_view webp, const std::string& source) {
  const auto require_read = [&](bool was_read) {
    require(was_read, source, " is a damaged WebP: its header cannot be read");
  };
  Stored whole{.bytes = webp};
  require_read(read_features(whole));
  if (!whole.features.has_animation) return whole;
  Stored frame{.bytes = only_frame(webp, whole.features)};
  require(!frame.bytes.empty(), source, " is an animated WebP: give one picture");
  require_read(read_features(frame) && frame.features.width == whole.features.width &&
               frame.features.height == whole.features.height);
  return frame;
}

}  // namespace

StoredSize webp_size(std::string_view webp, const std::string& source) {
  const auto found = read_head(webp, source).features;
  return {std::uint64_t(found.width), std::uint64_t(found.height)};
}

Pixels decode_webp(std::string_view webp, const std::string& source, std::uint64_t max_pixels,
                   Flatten& flatten) {
  const auto [bytes, found] = read_head(webp, source);
  require_few_pixels(std::uint64_t(found.width), std::uint64_t(found.height), max_pixels, source);
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto stride = std::size_t(found.width) * 4;
  RgbaPixels picture{found.width, found.height,
                     std::vector<std::uint8_t>(stride * std::size_t(found.height))};
  require(WebPDecodeRGBAInto(data, bytes.size(), picture.rgba.data(), picture.rgba.size(),
                             int(stride)) != nullptr,
          source, " is a damaged WebP: it ends too early or its pixels cannot be decompressed");
  return upright(flatten(picture), orientation_of(exif_of_webp(webp), xmp_of_webp(webp)));
}

}  // namespace braid
