// Compares with the web UI's masking.fill() and Pillow 13 by the first 16 digits of SHA-256 of the
// bytes.
#include "image/fill.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "braid/error.h"

namespace braid::fill_test {

Pixels noise(int width, int height, std::uint64_t factor) {
  Pixels picture{.width = width, .height = height, .rgb = {}};
  picture.rgb.resize(std::size_t(width) * std::size_t(height) * 3);
  for (std::uint64_t i = 0; i < picture.rgb.size(); ++i)
    picture.rgb[i] = std::uint8_t((i * i * factor + i * 7) % 65537 % 256);
  return picture;
}

Pixels with_hole(int width, int height) {
  Pixels mask{.width = width, .height = height, .rgb = {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const bool is_hole = y >= height / 4 && y < height / 2 && x >= width / 3 && x < 2 * width / 3;
      mask.rgb.insert(mask.rgb.end(), 3, is_hole ? 255 : 0);
    }
  return mask;
}

std::string digits_of(const Pixels& picture) {
  return sha256_hex({reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size()})
      .substr(0, 16);
}

TEST(Fill, OfAHoleEqualsTheWebUisBitForBit) {
  const auto filled = [](int w, int h) {
    return digits_of(filled_from_around(noise(w, h, 31), with_hole(w, h)));
  };
  EXPECT_EQ(filled(50, 30), "98f639fb5ad417ba");
  EXPECT_EQ(filled(64, 48), "a00a93c3b5f4f9de");
}

TEST(Fill, FollowsSoftMasksAndThoseThatAreAllWhite) {
  EXPECT_EQ(digits_of(filled_from_around(noise(50, 30, 31), noise(50, 30, 13))),
            "db7d56379ea2025f");
  const Pixels white{.width = 64, .height = 48, .rgb = std::vector<std::uint8_t>(64 * 48 * 3, 255)};
  EXPECT_EQ(digits_of(filled_from_around(noise(64, 48, 31), white)), "2d07a41ae9927700");
  EXPECT_THROW(filled_from_around(noise(50, 30, 31), white), InputError);
}

}  // namespace braid::fill_test
