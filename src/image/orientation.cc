#include "image/orientation.h"

#include <cstring>

namespace braid {

// Orientations 5 to 8 are 1 to 4 with rows and columns exchanged first.
Pixels upright(Pixels picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const bool is_turned = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Pixels out{is_turned ? picture.height : picture.width, is_turned ? picture.width : picture.height,
             std::vector<std::uint8_t>(picture.rgb.size()),
             std::vector<std::uint8_t>(picture.alpha.size())};
  auto* to = out.rgb.data();
  auto* alpha = out.alpha.data();
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x, to += 3) {
      const int across = from_right ? out.width - 1 - x : x;
      const int down = from_below ? out.height - 1 - y : y;
      const auto column = std::size_t(is_turned ? down : across);
      const auto row = std::size_t(is_turned ? across : down);
      const auto from = row * std::size_t(picture.width) + column;
      std::memcpy(to, &picture.rgb[from * 3], 3);
      if (picture.channels() == 4) *alpha++ = picture.alpha[from];
    }
  }
  return out;
}

}  // namespace braid
