#include "image/orientation.h"

#include <cstring>
#include <optional>

namespace braid {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112, kShort = 3;
constexpr std::size_t kEntryBytes = 12;

// Numbers of a TIFF structure, in its order of bytes; nothing behind its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), is_big_(bytes.starts_with("MM")) {}

  std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return {};
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | std::uint8_t(bytes_[at + (is_big_ ? i : size - 1 - i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_big_;
};

}  // namespace

int exif_orientation(std::string_view bytes) {
  const bool is_tiff = bytes.starts_with("MM") || bytes.starts_with("II");
  const Tiff tiff(bytes);
  const auto directory = tiff.number(4, 4);
  if (!is_tiff || tiff.number(2, 2) != 42u || !directory) return 1;
  const auto entries = tiff.number(*directory, 2).value_or(0);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto at = *directory + 2 + i * kEntryBytes;
    if (tiff.number(at, 2) != kOrientationTag || tiff.number(at + 2, 2) != kShort) continue;
    const auto value = tiff.number(at + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 1;
}

// Orientations 5 to 8 are those of 1 to 4 with rows and columns exchanged first.
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
