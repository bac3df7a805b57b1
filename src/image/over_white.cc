#include "image/over_white.h"

#include "base/error.h"

namespace braid {
namespace {

// (value * alpha + 255 * (255 - alpha)) / 255 for alpha of 0 to 255, rounded.
std::uint8_t blended(std::uint32_t value, std::uint32_t alpha) {
  const auto sum = value * alpha + 255 * (255 - alpha) + 128;
  return std::uint8_t((sum + (sum >> 8)) >> 8);
}

}  // namespace

Pixels over_white(const RgbaPixels& image) {
  const auto count = image.rgba.size() / 4;
  Pixels out{image.width, image.height, std::vector<std::uint8_t>(count * 3)};
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const from = &image.rgba[4 * i];
    for (std::size_t c = 0; c < 3; ++c) out.rgb[3 * i + c] = blended(from[c], from[3]);
  }
  return out;
}

Pixels without_transparency(const RgbaPixels& image) {
  const auto count = image.rgba.size() / 4;
  Pixels out{image.width, image.height, std::vector<std::uint8_t>(count * 3)};
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c) out.rgb[3 * i + c] = image.rgba[4 * i + c];
  return out;
}

Pixels transparency(const RgbaPixels& image) {
  Pixels out{image.width, image.height, {}};
  for (std::size_t i = 3; i < image.rgba.size(); i += 4)
    out.rgb.insert(out.rgb.end(), 3, std::uint8_t(255 - image.rgba[i]));
  return out;
}

void require_few_pixels(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels,
                        const std::string& source) {
  require(height == 0 || width <= max_pixels / height, source, " is too large: ", width, "x",
          height, " pixels, at most ", max_pixels, " are read");
}

}  // namespace braid
