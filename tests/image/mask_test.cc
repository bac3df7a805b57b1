// Compares with Pillow and diffusers by tests/data/pictures/{blurred,masks}.json, written by
// tools/parity/dump_pictures.py.
#include <gtest/gtest.h>
#include <zlib.h>

#include <ctime>
#include <limits>

#include "base/file.h"
#include "image/blur.h"
#include "image/mask.h"
#include "message_of.h"
#include "pictures.h"

#include <nlohmann/json.hpp>

namespace braid::mask_test {

nlohmann::json cases_of(const std::string& name) {
  return nlohmann::json::parse(
      read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures" / name));
}

std::size_t checksum(const Pixels& picture) {
  return crc32_z(0, picture.rgb.data(), picture.rgb.size());
}

// Draws what mask_case() there draws: steps of grey within the box, black around it.
Pixels mask_of(const nlohmann::json& wanted) {
  const int width = wanted["mask"][0], height = wanted["mask"][1];
  const auto& box = wanted["box"];
  Pixels mask{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const bool is_within = x >= box[0] && y >= box[1] && x < box[2] && y < box[3];
      const auto value = is_within ? 255 - 31 * ((y * width + x) % 9) : 0;
      mask.rgb.insert(mask.rgb.end(), 3, std::uint8_t(value));
    }
  return mask;
}

Pixels negative(Pixels picture) {
  for (auto& value : picture.rgb) value = std::uint8_t(255 - value);
  return picture;
}

TEST(Blur, EqualsPillowBitForBit) {
  const auto cases = cases_of("blurred.json");
  EXPECT_EQ(cases.size(), 40u);
  for (const auto& wanted : cases) {
    const auto got = blurred(noise_picture(wanted["size"][0], wanted["size"][1]), wanted["radius"]);
    EXPECT_EQ(checksum(got), wanted["crc32"]) << wanted;
  }
}

TEST(Blur, TakesTheNearestRadiusThatItCanHave) {
  const auto picture = noise_picture(50, 30);
  for (const float radius : {1001.0f, 1e8f, 1e12f, std::numeric_limits<float>::infinity()})
    EXPECT_EQ(blurred(picture, radius).rgb, blurred(picture, 1000).rgb) << radius;
  for (const float radius : {-1e12f, -5.0f, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(blurred(picture, radius).rgb, picture.rgb) << radius;
}

// A mask one pixel wide has as many lines as pixels. The processor's clock counts.
TEST(Blur, TakesTimeForPixelsAndNotForItsRadius) {
  const auto thin = noise_picture(1, 50'000);
  const auto ticks = [&](float radius) {
    const auto began = std::clock();
    (void)blurred(thin, radius);
    return std::clock() - began;
  };
  (void)ticks(1);
  EXPECT_LT(ticks(1000), 8 * ticks(1) + CLOCKS_PER_SEC / 100);
}

TEST(Mask, MarksAndFillsAndIsLaidBackAsInTheReference) {
  const auto cases = cases_of("masks.json");
  EXPECT_EQ(cases.size(), 8u);
  for (const auto& wanted : cases) {
    const auto mask = mask_of(wanted);
    const auto picture = noise_picture(mask.width, mask.height);
    const int width = wanted["size"][0], height = wanted["size"][1];
    const auto region = region_to_draw(mask, width, height, wanted["padding"]);
    const auto got = nlohmann::json{region.left, region.top, region.width, region.height};
    EXPECT_EQ(got, wanted["region"]) << wanted;
    const auto cut = filled(picture, region, width, height);
    EXPECT_EQ(checksum(cut), wanted["filled_crc32"]) << wanted;
    EXPECT_EQ(checksum(put_back(negative(cut), region, picture, mask)), wanted["back_crc32"])
        << wanted;
  }
}

// Wanted: list(picture.convert("L").tobytes()) of Pillow 13.
TEST(Mask, IsAsBrightAsPillowSays) {
  const Pixels colours{
      13, 1, {255, 0, 0, 0, 255, 0,  0,  0,   255, 1,   0, 0, 0, 1, 0, 0, 0,   1,   0, 0,
              4,   0, 0, 5, 10,  20, 30, 254, 255, 255, 2, 0, 0, 3, 1, 1, 200, 100, 50}};
  const std::vector<std::uint8_t> want{76, 150, 29, 0, 1, 0, 0, 1, 18, 255, 1, 2, 124};
  EXPECT_EQ(luma(colours), want);
}

TEST(Mask, IsRefusedWhereAllIsBlack) {
  const auto mask = grey_picture(4, 3);
  EXPECT_EQ(message_of([&] { region_to_draw(mask, 16, 16, 2); }),
            "the mask is black: nothing of the picture would be redrawn");
}

// The smaller side of what fits would be less than a pixel.
TEST(Filled, AThinPictureKeepsAPixel) {
  const auto line = grey_picture(1, 2000, 200);
  const auto out = filled(line, {0, 0, 1, 2000}, 512, 512);
  EXPECT_EQ(out.rgb.size(), 3u * 512 * 512);
  EXPECT_EQ(out.rgb[3 * 256], 200);
}

// What covers the region would have 200000 x 200000 pixels.
TEST(PutBack, TakesMemoryForTheRegion) {
  constexpr int kLong = 200'000;
  const auto line = grey_picture(kLong, 1, 10), mask = grey_picture(kLong, 1, 255);
  const auto drawn = grey_picture(64, 64, 200);
  EXPECT_EQ(put_back(drawn, {0, 0, kLong, 1}, line, mask).rgb,
            std::vector<std::uint8_t>(3 * kLong, 200));
}

}  // namespace braid::mask_test
