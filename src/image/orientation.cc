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
             std::vector<std::uint8_t>(picture.rgb.size())};
  auto* to = out.rgb.data();
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x, to += 3) {
      const int across = from_right ? out.width - 1 - x : x;
      const int down = from_below ? out.height - 1 - y : y;
      const auto column = std::size_t(is_turned ? down : across);
      const auto row = std::size_t(is_turned ? across : down);
      std::memcpy(to, &picture.rgb[(row * std::size_t(picture.width) + column) * 3], 3);
    }
  }
  return out;
}

}  // namespace braid
