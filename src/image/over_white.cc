#include "image/over_white.h"

#include <algorithm>

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

Pixels over_white(const Pixels& picture) {
  auto out = picture;
  out.alpha.clear();
  for (std::size_t i = 0; i < out.rgb.size() && picture.channels() == 4; ++i)
    out.rgb[i] = blended(out.rgb[i], picture.alpha[i / 3]);
  return out;
}

Pixels with_alpha(const RgbaPixels& image) {
  auto out = without_transparency(image);
  for (std::size_t i = 3; i < image.rgba.size(); i += 4) out.alpha.push_back(image.rgba[i]);
  const auto is_opaque = [](std::uint8_t value) { return value == 255; };
  if (std::ranges::all_of(out.alpha, is_opaque)) out.alpha.clear();
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

std::vector<std::uint8_t> joined_rgba(std::span<const std::uint8_t> rgb,
                                      std::span<const std::uint8_t> alpha) {
  require(rgb.size() == 3 * alpha.size(), "a picture of ", rgb.size() / 3,
          " pixels should have as many values of alpha, it has ", alpha.size());
  std::vector<std::uint8_t> rgba;
  rgba.reserve(4 * alpha.size());
  for (std::size_t i = 0; i < alpha.size(); ++i)
    rgba.insert(rgba.end(), {rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2], alpha[i]});
  return rgba;
}

void require_few_pixels(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels,
                        const std::string& source) {
  require(height == 0 || width <= max_pixels / height, source, " is too large: ", width, "x",
          height, " pixels, at most ", max_pixels, " are read");
}

}  // namespace braid
