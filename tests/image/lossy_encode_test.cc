// Lossy files: read back they look like the picture, and quality costs bytes.
#include "image/lossy/lossy_encode.h"

#include <gmock/gmock.h>

#include "image/picture_file.h"
#include "message_of.h"

namespace braid::lossy_encode_test {

using testing::HasSubstr;

// Smooth in every colour, like real pictures.
Pixels slopes(int width, int height) {
  Pixels picture{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const int value : {255 * x / width, 255 * y / height, 255 * (x + y) / (width + height)})
        picture.rgb.push_back(std::uint8_t(value));
  return picture;
}

double mean_error(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(int(a.rgb[i]) - int(b.rgb[i]));
  return sum / double(a.rgb.size());
}

using Encode = decltype(&encode_jpeg);
class LossyEncode : public testing::TestWithParam<Encode> {};

TEST_P(LossyEncode, LooksLikeThePicture) {
  for (const auto& [width, height] : {std::pair(1, 1), {17, 33}, {64, 48}}) {
    const auto picture = slopes(width, height);
    const auto back = decode_picture(GetParam()(width, height, picture.rgb, 100, {}), "it");
    ASSERT_EQ(std::pair(back.width, back.height), std::pair(width, height));
    EXPECT_LT(mean_error(back, picture), 3) << width << "x" << height;
  }
}

TEST_P(LossyEncode, SavesBytesWithLessQuality) {
  const auto picture = slopes(200, 100);
  const auto bytes = [&](int quality) {
    return GetParam()(200, 100, picture.rgb, quality, {}).size();
  };
  EXPECT_LT(bytes(0), bytes(50));
  EXPECT_LT(bytes(50), bytes(100));
  EXPECT_LT(bytes(100), picture.rgb.size());
}

TEST_P(LossyEncode, RefusesSizesThatAreNone) {
  const auto refusal = [&](int width, int height, std::size_t bytes) {
    return message_of([&] { GetParam()(width, height, std::vector<std::uint8_t>(bytes), 90, {}); });
  };
  EXPECT_THAT(refusal(0, 1, 0), HasSubstr("they are 0x1"));
  EXPECT_THAT(refusal(70000, 1, 210000), HasSubstr("they are 70000x1"));
  EXPECT_THAT(refusal(2, 2, 11), HasSubstr("it has 11 in all"));
}

INSTANTIATE_TEST_SUITE_P(Formats, LossyEncode, testing::Values(encode_jpeg, encode_webp),
                         [](const auto& info) { return info.index == 0 ? "Jpeg" : "WebP"; });

// Red and blue columns, one pixel each. With colours at half the resolution both become purple.
TEST(JpegEncode, KeepsEachPixelsColourFromQuality90On) {
  Pixels picture{32, 8, {}};
  for (int i = 0; i < 32 * 8; ++i)
    for (const int value : {i % 2 * 255, 0, 255 - i % 2 * 255})
      picture.rgb.push_back(std::uint8_t(value));
  const auto error = [&](int quality) {
    return mean_error(decode_picture(encode_jpeg(32, 8, picture.rgb, quality), "it"), picture);
  };
  EXPECT_LT(error(90), 10);
  EXPECT_LT(error(100), 2);
  EXPECT_GT(error(89), 40);
}

// WebP Container Specification: RIFF's size is that of what follows, and each chunk's size is made
// even by a byte that it does not count.
TEST(WebPEncode, PadsChunksOfOddSizes) {
  const auto picture = slopes(5, 3);
  const auto number = [](std::string_view webp, std::size_t at) {
    std::size_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::uint8_t(webp[at + i]);
    return value;
  };
  for (const std::string exif : {"MM", "MM*"}) {
    const auto webp = encode_webp(5, 3, picture.rgb, 80, exif);
    EXPECT_EQ(webp.size() % 2, 0u);
    EXPECT_EQ(number(webp, 4), webp.size() - 8);
    std::vector<std::string> names;
    std::size_t at = 12;
    for (; at < webp.size(); at += 8 + number(webp, at + 4) + number(webp, at + 4) % 2)
      names.push_back(webp.substr(at, 4));
    EXPECT_EQ(at, webp.size());
    EXPECT_THAT(names, testing::ElementsAre("VP8X", "VP8 ", "EXIF"));
    EXPECT_EQ(number(webp, webp.size() - 8 - exif.size() - exif.size() % 2 + 4), exif.size());
    EXPECT_EQ(webp.substr(24, 6), std::string("\4\0\0\2\0\0", 6)) << "sides less 1";
  }
}

}  // namespace braid::lossy_encode_test
