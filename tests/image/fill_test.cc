// Compares with the web UI's masking.fill() and Pillow 13 by digests.
#include "image/fill.h"

#include <gtest/gtest.h>

#include "braid/error.h"
#include "pictures.h"

namespace braid::fill_test {

Pixels with_hole(int width, int height) {
  Pixels mask{.width = width, .height = height, .rgb = {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const bool is_hole = y >= height / 4 && y < height / 2 && x >= width / 3 && x < 2 * width / 3;
      mask.rgb.insert(mask.rgb.end(), 3, is_hole ? 255 : 0);
    }
  return mask;
}

TEST(Fill, OfAHoleEqualsTheWebUisBitForBit) {
  const auto filled = [](int w, int h) {
    return picture_digest(filled_from_around(noise_picture(w, h), with_hole(w, h)));
  };
  EXPECT_EQ(filled(50, 30), "98f639fb5ad417ba");
  EXPECT_EQ(filled(64, 48), "a00a93c3b5f4f9de");
}

TEST(Fill, FollowsSoftMasksAndThoseThatAreAllWhite) {
  EXPECT_EQ(picture_digest(filled_from_around(noise_picture(50, 30), noise_picture(50, 30, 13))),
            "db7d56379ea2025f");
  const auto white = grey_picture(64, 48, 255);
  EXPECT_EQ(picture_digest(filled_from_around(noise_picture(64, 48), white)), "2d07a41ae9927700");
  EXPECT_THROW(filled_from_around(noise_picture(50, 30), white), InputError);
}

}  // namespace braid::fill_test
