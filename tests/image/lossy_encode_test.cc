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

}  // namespace braid::lossy_encode_test
