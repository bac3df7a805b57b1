// PNGs that cameras and editors write and Braid does not: interlaced, with palettes of few bits, 16
// bits, and transparent colours. Wanted pixels follow from the PNG specification.
#include <gmock/gmock.h>

#include "image/picture_file.h"
#include "image/png.h"
#include "make_png.h"
#include "message_of.h"

namespace braid::png_kinds_test {

using namespace std::literals;
using testing::ElementsAre;

std::vector<std::uint8_t> pixels_of(const std::string& png) { return decode_png(png, "it").rgb; }

// The first channel of each pixel.
std::vector<int> greys_of(const std::string& png) {
  std::vector<int> greys;
  const auto rgb = pixels_of(png);
  for (std::size_t i = 0; i < rgb.size(); i += 3) greys.push_back(rgb[i]);
  return greys;
}

std::string interlaced_ihdr(std::uint32_t width, std::uint32_t height) {
  return chunk("IHDR", big_endian(width) + big_endian(height) + "\x08\x02\0\0\x01"s);
}

// Adam7: the pixels at (x, y) + multiples of (dx, dy), pass by pass; passes without any are absent.
std::string interlaced(const Pixels& picture) {
  struct Pass {
    int x, y, dx, dy;
  };
  constexpr Pass kPasses[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  std::string rows;
  for (const auto& pass : kPasses)
    for (int y = pass.y; y < picture.height && pass.x < picture.width; y += pass.dy) {
      rows += '\0';
      for (int x = pass.x; x < picture.width; x += pass.dx)
        rows.append(
            reinterpret_cast<const char*>(&picture.rgb[std::size_t(y * picture.width + x) * 3]), 3);
    }
  return png_of(interlaced_ihdr(std::uint32_t(picture.width), std::uint32_t(picture.height)), rows);
}

TEST(PngKinds, InterlacedOnesOfEverySizeAreThePicture) {
  for (int width = 1; width <= 17; ++width)
    for (int height = 1; height <= 9; ++height) {
      Pixels picture{width, height, {}};
      for (int i = 0; i < width * height * 3; ++i)
        picture.rgb.push_back(std::uint8_t(i * i * 31 + i * 7));
      EXPECT_EQ(pixels_of(interlaced(picture)), picture.rgb) << width << "x" << height;
    }
}

TEST(PngKinds, PalettesOfFewBitsEndWithinAByte) {
  const auto palette = chunk("PLTE", "\x01\x01\x01\x10\x10\x10\x20\x20\x20\x30\x30\x30"s);
  // 3 2 1 | 0 1 2, and a bit at the end that belongs to no pixel
  EXPECT_THAT(greys_of(png_of(ihdr(3, 2, 2, 3), "\0\xe7\0\x1b"sv, palette)),
              ElementsAre(0x30, 0x20, 0x10, 0x01, 0x10, 0x20));
  EXPECT_THAT(greys_of(png_of(ihdr(9, 1, 1, 3), "\0\xa5\xff"sv, palette)),
              ElementsAre(0x10, 1, 0x10, 1, 1, 0x10, 1, 0x10, 0x10));
}

// tRNS of a palette may be shorter than it: later colours are opaque. Over white.
TEST(PngKinds, PalettesAreTransparentAsFarAsTheySay) {
  const auto palette = chunk("PLTE", "\0\0\0\x14\x14\x14\x28\x28\x28"s);
  for (const auto& [alphas, want] :
       {std::pair("\0"s, std::vector{255, 20, 40}),
        {"\xff\0"s, {0, 255, 40}},
        {"\xff\x80\0"s, {0, 137, 255}}})  // 20 * 128 / 255 + 127 = 137.04
    EXPECT_EQ(greys_of(png_of(ihdr(3, 1, 2, 3), "\0\x18"sv, palette + chunk("tRNS", alphas))),
              want);
}

// One colour may be transparent, compared in the file's own depth.
TEST(PngKinds, OneColourMayBeTransparent) {
  const auto grey = chunk("tRNS", "\0\x07"s);
  EXPECT_THAT(greys_of(png_of(ihdr(3, 1, 8, 0), "\0\x06\x07\x08"sv, grey)), ElementsAre(6, 255, 8));
  EXPECT_THAT(greys_of(png_of(ihdr(2, 1, 4, 0), "\0\x76"sv, grey)), ElementsAre(255, 0x66));
  EXPECT_THAT(greys_of(png_of(ihdr(3, 1, 1, 0), "\0\xa0"sv, chunk("tRNS", "\0\0"s))),
              ElementsAre(255, 255, 255));
  const auto rgb = chunk("tRNS", "\0\x01\0\x02\0\x03"s);
  EXPECT_THAT(pixels_of(png_of(ihdr(2, 1, 8, 2), "\0\x01\x02\x03\x01\x02\x04"sv, rgb)),
              ElementsAre(255, 255, 255, 1, 2, 4));
  const auto deep = chunk("tRNS", "\x80\x01"s);
  EXPECT_THAT(greys_of(png_of(ihdr(2, 1, 16, 0), "\0\x80\x01\x80\x02"sv, deep)),
              ElementsAre(255, 128));
  EXPECT_TRUE(
      decode_transparency(png_of(ihdr(3, 1, 8, 0), "\0\x06\x07\x08"sv, grey), "it").has_value());
}

// value * 255 / 65535, to nearest: as far from what is cut off as half a unit.
TEST(PngKinds, SixteenBitsAreRoundedToEight) {
  std::string rows(1, '\0');
  std::vector<int> want;
  for (int value = 0; value < 65536; value += 113) {
    rows += {char(value >> 8), char(value)};
    want.push_back((value * 2 + 257) / 514);
  }
  const auto header = ihdr(std::uint32_t(want.size()), 1, 16, 0);
  EXPECT_EQ(greys_of(png_of(header, rows)), want);
}

// A file may be small because its picture is: one bit per pixel, all alike, fills 1,032 to 1.
TEST(PngKinds, ALargePictureOfOneColourIsASmallFile) {
  const std::string rows((1 + 1024 / 8) * 1024, '\0');
  const auto png = png_of(ihdr(1024, 1024, 1, 0), rows);
  EXPECT_LT(png.size(), 400u);
  EXPECT_EQ(pixels_of(png), std::vector<std::uint8_t>(1024 * 1024 * 3));
}

// The pixels may be cut anywhere into chunks, also empty ones.
TEST(PngKinds, PixelsMayLieInManyChunks) {
  const std::string rows = "\0\x01\x02\x03\x04\x05\x06\0\x07\x08\x09\x0a\x0b\x0c"s;
  const auto data = packed(rows);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    const auto png = "\x89PNG\r\n\x1a\n" + ihdr(2, 2, 8, 2) + chunk("IDAT", data.substr(0, cut)) +
                     chunk("IDAT", "") + chunk("IDAT", data.substr(cut)) + chunk("IEND", "");
    EXPECT_THAT(pixels_of(png), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)) << cut;
  }
}

TEST(PngKinds, AChunkThatEndsBeforeItsChecksumIsRefused) {
  auto png = png_of(ihdr(1, 1, 8, 2), "\0\x01\x02\x03"sv);
  png.erase(png.size() - 12);  // IEND
  for (std::uint32_t claimed = 0; claimed < 8; ++claimed)
    EXPECT_THAT(message_of([&] { decode_png(png + big_endian(claimed) + "tEXtabc", "it"); }),
                testing::StartsWith("it is a damaged PNG: "))
        << claimed;
}

}  // namespace braid::png_kinds_test
