#include "image/fill.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "image/blur.h"
#include "image/mask.h"

namespace braid {
namespace {

struct Layer {
  float radius;
  int repeats;
};
constexpr std::array kLayers = {Layer{256, 1}, Layer{64, 1}, Layer{16, 2},
                                Layer{4, 4},   Layer{2, 2},  Layer{0, 1}};
constexpr std::uint32_t kFractionBits = 7;  // of fractions, in Pillow's AlphaComposite

std::uint32_t divided_by_255(std::uint32_t value) { return (value + (value >> 8)) >> 8; }

using Rgba = std::array<std::uint8_t, 4>;

// Colours times what is kept of them, and what is kept, as grey.
struct Kept {
  Pixels colours, share;
};

Kept kept_of(const Pixels& picture, const Pixels& mask) {
  const auto redrawn = luma(mask);
  Kept kept{.colours = picture, .share = picture};
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) {
    const std::uint32_t share = 255u - redrawn[i / 3];
    kept.colours.rgb[i] = std::uint8_t(divided_by_255(picture.rgb[i] * share + 128));
    kept.share.rgb[i] = std::uint8_t(share);
  }
  return kept;
}

// Pillow's conversion from RGBa to RGBA.
Rgba pixel_of(const Kept& kept, std::size_t i) {
  const auto alpha = kept.share.rgb[3 * i];
  Rgba pixel{0, 0, 0, alpha};
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint32_t value = kept.colours.rgb[3 * i + c];
    const bool is_plain = alpha == 0 || alpha == 255;
    pixel[c] = std::uint8_t(is_plain ? value : std::min(255u, 255u * value / alpha));
  }
  return pixel;
}

// Pillow's alpha_composite() of `over` on `under`.
void lay_over(Rgba& under, const Rgba& over) {
  if (over[3] == 0) return;
  const std::uint32_t alpha = over[3] * 255u + under[3] * (255u - over[3]);
  const std::uint32_t share = over[3] * 255u * 255u * (1u << kFractionBits) / alpha;
  const std::uint32_t rest = (255u << kFractionBits) - share;
  for (std::size_t c = 0; c < 3; ++c)
    under[c] =
        std::uint8_t(divided_by_255(over[c] * share + under[c] * rest + (128u << kFractionBits)) >>
                     kFractionBits);
  under[3] = std::uint8_t(divided_by_255(alpha + 128));
}

}  // namespace

Pixels filled_from_around(const Pixels& picture, const Pixels& mask) {
  require(picture.width == mask.width && picture.height == mask.height,
          "the mask should have the picture's size, ", picture.width, "x", picture.height,
          ", it has ", mask.width, "x", mask.height);
  const auto kept = kept_of(picture, mask);
  std::vector<Rgba> canvas(picture.rgb.size() / 3, Rgba{});
  for (const auto& [radius, repeats] : kLayers) {
    const Kept layer{.colours = blurred(kept.colours, radius),
                     .share = blurred(kept.share, radius)};
    for (std::size_t i = 0; i < canvas.size(); ++i) {
      const auto over = pixel_of(layer, i);
      for (int k = 0; k < repeats; ++k) lay_over(canvas[i], over);
    }
  }
  auto filled = picture;
  for (std::size_t i = 0; i < filled.rgb.size(); ++i) filled.rgb[i] = canvas[i / 3][i % 3];
  return filled;
}

}  // namespace braid
