// Compares with Pillow by tests/data/pictures/resized.json, written by
// tools/parity/dump_pictures.py.
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "base/file.h"
#include "image/over_white.h"
#include "image/resize.h"
#include "pictures.h"

#include <nlohmann/json.hpp>

namespace braid::resize_test {

// They stand for the sizes of others.
TEST(Resize, ChangesTheSidesOfPicturesWithoutPixels) {
  const auto whole = noise_picture(70, 41);
  const Pixels sides{.width = 70, .height = 41, .rgb = {}};
  const auto made_of = [](const Pixels& p) {
    return std::vector<Pixels>{resized(p, 33, 20, Resampling::kLanczos), with_at_most(p, 1000),
                               middle_of(p, 16), cropped(p, 3, 4, 20, 10),
                               mirrored_around(p, 2, 3, 80, 50, Mirror::kAtEdge)};
  };
  const auto want = made_of(whole), got = made_of(sides);
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].width, want[i].width) << i;
    EXPECT_EQ(got[i].height, want[i].height) << i;
    EXPECT_TRUE(got[i].rgb.empty()) << i;
  }
}

TEST(Resize, EqualsPillowBitForBit) {
  const std::map<std::string, Resampling> resamplings = {{"bilinear", Resampling::kBilinear},
                                                         {"bicubic", Resampling::kBicubic},
                                                         {"lanczos", Resampling::kLanczos}};
  const auto path = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures/resized.json";
  const auto cases = nlohmann::json::parse(read_file(path));
  EXPECT_EQ(cases.size(), 81u);
  for (const auto& wanted : cases) {
    const auto got = resized(noise_picture(wanted["from"][0], wanted["from"][1]), wanted["to"][0],
                             wanted["to"][1], resamplings.at(wanted["filter"]));
    EXPECT_EQ(crc32_z(0, got.rgb.data(), got.rgb.size()), wanted["crc32"]) << wanted;
  }
}

// Adds what with_alpha() in dump_pictures.py adds.
Pixels with_alpha_of(Pixels picture) {
  for (std::size_t i = 0; i < picture.rgb.size() / 3; ++i)
    picture.alpha.push_back(std::uint8_t((i * i * 17 + i * 5) % 65521 % 256));
  return picture;
}

TEST(Resize, MixesColoursByTheirAlphaAsPillowDoes) {
  const std::map<std::string, Resampling> resamplings = {{"bilinear", Resampling::kBilinear},
                                                         {"bicubic", Resampling::kBicubic},
                                                         {"lanczos", Resampling::kLanczos}};
  const auto path = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures/with_alpha.json";
  const auto cases = nlohmann::json::parse(read_file(path));
  EXPECT_EQ(cases.size(), 30u);
  for (const auto& wanted : cases) {
    const auto picture = with_alpha_of(noise_picture(wanted["from"][0], wanted["from"][1]));
    const auto got =
        resized(picture, wanted["to"][0], wanted["to"][1], resamplings.at(wanted["filter"]));
    const auto rgba = joined_rgba(got.rgb, got.alpha);
    EXPECT_EQ(crc32_z(0, rgba.data(), rgba.size()), wanted["crc32"]) << wanted;
  }
}

TEST(Resize, FindsThePixelThatPillowFinds) {
  const auto path = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures/nearest.json";
  const auto cases = nlohmann::json::parse(read_file(path));
  EXPECT_EQ(cases.size(), 34u);
  for (const auto& wanted : cases) {
    const auto got = resized_to_nearest(noise_picture(wanted["from"][0], wanted["from"][1]),
                                        wanted["to"][0], wanted["to"][1]);
    EXPECT_EQ(crc32_z(0, got.rgb.data(), got.rgb.size()), wanted["crc32"]) << wanted;
  }
}

TEST(Resize, LeavesAPictureOfTheSizeAsItIs) {
  const auto picture = noise_picture(9, 7);
  EXPECT_EQ(resized(picture, 9, 7, Resampling::kLanczos).rgb, picture.rgb);
}

TEST(Resize, CutsAPartOut) {
  const auto picture = noise_picture(9, 7);
  const auto part = cropped(picture, 2, 3, 4, 2);
  EXPECT_EQ(part.width, 4);
  EXPECT_EQ(part.height, 2);
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(part.rgb[y * 12 + i], picture.rgb[((3 + y) * 9 + 2) * 3 + i]);
}

// Whichever pass comes first, the whole is the one that is compared with Pillow.
TEST(Resize, MakesAPartAsItIsInTheWhole) {
  constexpr Sides kSizes[] = {{40, 30}, {70, 30}, {70, 41}, {33, 41}, {9, 90}, {200, 5}, {150, 99}};
  const auto opaque = noise_picture(70, 41);
  for (const auto& picture : {opaque, with_alpha_of(opaque)})
    for (const auto [width, height] : kSizes)
      for (const auto resampling : {Resampling::kBilinear, Resampling::kLanczos}) {
        const auto whole = resized(picture, width, height, resampling);
        const int left = width / 3, top = height / 4, columns = width / 2, rows = height / 2 + 1;
        const auto want = cropped(whole, left, top, columns, rows);
        const auto got = part_of_resized(picture,
                                         {.whole_width = width,
                                          .whole_height = height,
                                          .left = left,
                                          .top = top,
                                          .width = columns,
                                          .height = rows},
                                         resampling);
        EXPECT_EQ(got.width, columns);
        EXPECT_EQ(got.rgb, want.rgb) << width << "x" << height;
        EXPECT_EQ(got.alpha, want.alpha) << width << "x" << height;
      }
}

// The whole would have 3 * 10^9 columns.
TEST(Resize, MakesAPartOfWhatNoMemoryHolds) {
  auto line = noise_picture(6'000'000, 1);
  const auto pixel = [&](int column) {
    return std::vector(&line.rgb[3 * column], &line.rgb[3 * column + 3]);
  };
  for (int column = 2'999'990; column < 3'000'010; ++column)
    std::copy_n(&line.rgb[0], 3, &line.rgb[3 * std::size_t(column)]);
  const auto part = part_of_resized(line,
                                    {.whole_width = 3'072'000'000,
                                     .whole_height = 512,
                                     .left = 1'535'999'000,
                                     .top = 0,
                                     .width = 2048,
                                     .height = 512},
                                    Resampling::kBilinear);
  ASSERT_EQ(part.rgb.size(), 2048u * 512 * 3);
  EXPECT_EQ(std::vector(part.rgb.begin(), part.rgb.begin() + 3), pixel(0));
  EXPECT_EQ(std::vector(part.rgb.end() - 3, part.rgb.end()), pixel(0));
}

// The largest sides that a file can claim have more pixels than 32 bits count.
TEST(Resize, ShrinksSidesToAtMostSoManyPixels) {
  const auto shrunk = [](int width, int height, std::int64_t pixels) {
    const auto sides = sides_with_at_most({.width = width, .height = height}, pixels);
    return std::pair(sides.width, sides.height);
  };
  EXPECT_EQ(shrunk(1024, 1024, 1 << 20), std::pair(1024, 1024));
  EXPECT_EQ(shrunk(2048, 1024, 1 << 20), std::pair(1448, 724));  // divided by sqrt(2)
  EXPECT_EQ(shrunk(65536, 65536, 1 << 20), std::pair(1024, 1024));
  EXPECT_EQ(shrunk(70000, 70000, 1'000'000), std::pair(1000, 1000));
  EXPECT_EQ(shrunk(3'000'000, 1, 1 << 20), std::pair(1'773'620, 1)) << "no side vanishes";
}

}  // namespace braid::resize_test
