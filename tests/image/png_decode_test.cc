#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "image/png.h"
#include "make_png.h"
#include "message_of.h"

namespace braid::png_decode_test {

using namespace std::literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& png) {
  return message_of([&] { decode_png(png, "a.png"); });
}

std::vector<std::uint8_t> pixels_of(const std::string& png) { return decode_png(png, "a").rgb; }

TEST(PngDecode, MakesRgbOfEveryKindOfPng) {
  EXPECT_THAT(pixels_of(png_of(ihdr(2, 1, 1, 0), "\0\x40"sv)), ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(pixels_of(png_of(ihdr(2, 1, 4, 0), "\0\x5a"sv)),
              ElementsAre(85, 85, 85, 170, 170, 170));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 4), "\0\x07\xff"sv)), ElementsAre(7, 7, 7));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 6), "\0\x01\x02\x03\xff"sv)), ElementsAre(1, 2, 3));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 16, 2), "\0\xff\xff\x80\x80\0\xff"sv)),
              ElementsAre(255, 128, 1));
  const auto palette = chunk("PLTE", "\x01\x02\x03\x09\x08\x07") + chunk("tRNS", "\x10");
  EXPECT_THAT(pixels_of(png_of(ihdr(2, 1, 8, 3), "\0\x01\0"sv, palette)),
              ElementsAre(9, 8, 7, 239, 239, 239));
}

// 255 (1 - a) + a v, rounded.
TEST(PngDecode, LaysTransparentPixelsOverWhite) {
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 4), "\0\x07\x01"sv)), ElementsAre(254, 254, 254));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 6), "\0\x01\x02\x03\0"sv)),
              ElementsAre(255, 255, 255));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 6), "\0\0\x64\xc8\x80"sv)),
              ElementsAre(127, 177, 227));
}

TEST(PngDecode, RefusesAnimations) {
  const auto animated =
      png_of(ihdr(1, 1, 8, 2), "\0\x01\x02\x03"sv, chunk("acTL", big_endian(2) + big_endian(0)));
  EXPECT_EQ(refusal(animated), "a.png is an animated PNG: give one picture");
  const auto cut = png_of(ihdr(1, 1, 8, 2), "\0\x01\x02\x03"sv, chunk("acTL", "\0"sv));
  EXPECT_EQ(refusal(cut), "a.png is an animated PNG: give one picture");
}

TEST(PngDecode, ReadsAnAnimationOfOneFrame) {
  const auto single =
      png_of(ihdr(1, 1, 8, 2), "\0\x01\x02\x03"sv, chunk("acTL", big_endian(1) + big_endian(0)));
  EXPECT_THAT(pixels_of(single), ElementsAre(1, 2, 3));
}

TEST(PngDecode, KeepsValuesWhateverGammaTheFileNames) {
  const auto gamma = chunk("gAMA", big_endian(100000));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 2), "\0\x40\x80\xc0"sv, gamma)),
              ElementsAre(0x40, 0x80, 0xc0));
}

TEST(PngDecode, RefusesEveryTruncation) {
  const auto png = encode_png(9, 5, std::vector<std::uint8_t>(9 * 5 * 3, 77), {{"seed", "1"}});
  for (std::size_t size = 0; size < png.size(); ++size) {
    EXPECT_THAT(refusal(png.substr(0, size)), HasSubstr("a.png is ")) << size;
  }
  EXPECT_EQ(refusal(png + "what follows is not read"), "");
}

TEST(PngDecode, FindsEveryFlippedBit) {
  const auto png = encode_png(9, 5, std::vector<std::uint8_t>(9 * 5 * 3, 77));
  for (std::size_t bit = 0; bit < png.size() * 8; ++bit) {
    auto damaged = png;
    damaged[bit / 8] = char(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(refusal(damaged), HasSubstr("a.png is ")) << bit;
  }
}

// A checksum does not authenticate: these are well-formed outside and false inside.
TEST(PngDecode, RefusesHeadersThatCannotBe) {
  for (const auto& header : {ihdr(0, 1, 8, 2), ihdr(1, 0, 8, 2), ihdr(1, 1, 3, 2), ihdr(1, 1, 8, 5),
                             ihdr(1, 1, 1, 2), ihdr(0xffffffff, 1, 8, 2), chunk("IHDR", "x")}) {
    EXPECT_THAT(refusal(png_of(header, "\0\x01\x02\x03"sv)), HasSubstr("a.png is "));
  }
}

TEST(PngDecode, RefusesSizesThatTheFileCannotHold) {
  EXPECT_THAT(refusal(png_of(ihdr(100'000, 100'000, 8, 2), "\0\x01\x02\x03"sv)),
              HasSubstr("at most 67108864"));
  EXPECT_THAT(refusal(png_of(ihdr(8192, 8192, 8, 2), "\0\x01\x02\x03"sv)),
              HasSubstr("cannot hold 8192x8192"));
}

TEST(PngDecode, RefusesPixelsThatEndTooEarlyOrDoNotUnpack) {
  EXPECT_THAT(refusal(png_of(ihdr(2, 2, 8, 2), "\0\x01\x02\x03"sv)), HasSubstr("damaged"));
  const auto garbage =
      "\x89PNG\r\n\x1a\n" + ihdr(1, 1, 8, 2) + chunk("IDAT", "no deflate") + chunk("IEND", "");
  EXPECT_THAT(refusal(garbage), HasSubstr("damaged"));
  EXPECT_THAT(refusal(png_of(ihdr(1, 1, 8, 3), "\0\x01"sv)), HasSubstr("damaged"));  // no PLTE
}

TEST(PngDecode, IsNotStoppedByTextAroundThePixels) {
  const auto bomb = chunk("zTXt", "key\0\0"s + packed(std::string(20'000'000, 'x')));
  EXPECT_THAT(pixels_of(png_of(ihdr(1, 1, 8, 2), "\0\x01\x02\x03"sv, bomb)), ElementsAre(1, 2, 3));
}

TEST(PngDecode, SurvivesRandomDamageWithTrueChecksums) {
  std::mt19937 random(3);
  const std::string rows("\0\x01\x02\x03\x01\x04\x05\x06", 8);
  for (int trial = 0; trial < 2000; ++trial) {
    auto body = packed(rows);
    body[random() % body.size()] = char(random());
    const auto png =
        "\x89PNG\r\n\x1a\n" + ihdr(1, 2, 8, 2) + chunk("IDAT", body) + chunk("IEND", "");
    const auto message = refusal(png);
    EXPECT_TRUE(message == "" || message.starts_with("a.png is a damaged PNG"));
  }
}

}  // namespace braid::png_decode_test
