// Compares with Pillow by tests/data/pictures, written by tools/parity/dump_pictures.py.
#include <gmock/gmock.h>

#include "base/file.h"
#include "image/exif.h"
#include "image/mask.h"
#include "image/orientation.h"
#include "image/picture_file.h"
#include "make_png.h"
#include "message_of.h"

namespace braid::picture_file_test {

using namespace std::literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kPictures =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures";

std::string file(const std::string& name) { return read_file(kPictures / name); }

std::string refusal(const std::string& bytes, std::uint64_t max_pixels = kMaxPixels) {
  return message_of([&] { decode_picture(bytes, "it", max_pixels); });
}

class AsPillow : public testing::TestWithParam<std::string> {};

TEST_P(AsPillow, ReadsIt) {
  const auto got = decode_picture(file(GetParam()), GetParam());
  const auto want = decode_png(file(GetParam() + ".expected.png"), "expected");
  EXPECT_EQ(got.width, want.width);
  EXPECT_EQ(got.height, want.height);
  EXPECT_EQ(got.rgb, want.rgb);
}

TEST_P(AsPillow, KnowsItsSizeFromItsHead) {
  const auto [width, height] = stored_size(file(GetParam()), GetParam());
  const auto want = decode_png(file(GetParam() + ".expected.png"), "expected");
  EXPECT_THAT((std::array{int(width), int(height)}),
              testing::UnorderedElementsAre(want.width, want.height));
}

TEST_P(AsPillow, RefusesEveryTruncation) {
  const auto bytes = file(GetParam());
  for (std::size_t size = 0; size < bytes.size() - 2; ++size)
    EXPECT_THAT(refusal(bytes.substr(0, size)), testing::StartsWith("it ")) << size;
}

INSTANTIATE_TEST_SUITE_P(Files, AsPillow,
                         testing::Values("plain.jpg", "progressive.jpg", "grey.jpg", "inks.jpg",
                                         "turned2.jpg", "turned3.jpg", "turned4.jpg", "turned5.jpg",
                                         "turned6.jpg", "turned7.jpg", "turned8.jpg", "lossy.webp",
                                         "clear.webp", "turned.webp", "turned.png", "clear.png",
                                         "palette.png", "clear_grey.png"),
                         [](const auto& info) {
                           auto name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// Pillow takes all inks for those of Adobe's programs, which are inverted.
TEST(PictureFile, NeedsNoMarkToKnowInvertedInks) {
  auto jpeg = file("inks.jpg");
  const auto want = decode_picture(jpeg, "marked").rgb;
  const auto mark = jpeg.find("\xff\xee");  // with its size in the next two bytes
  ASSERT_EQ(jpeg.substr(mark + 4, 5), "Adobe");
  jpeg.erase(mark, 2u + std::uint8_t(jpeg[mark + 3]));
  EXPECT_EQ(decode_picture(jpeg, "unmarked").rgb, want);
}

TEST(PictureFile, TellsWhatIsTransparent) {
  const auto want = decode_png(file("clear.png.transparency.png"), "expected");
  const auto of_png = decode_transparency(file("clear.png"), "it");
  ASSERT_TRUE(of_png.has_value());
  EXPECT_EQ(of_png->rgb, want.rgb);
  EXPECT_TRUE(decode_transparency(file("clear.webp"), "it").has_value());
  for (const auto* const name : {"plain.jpg", "turned.png", "lossy.webp"})
    EXPECT_FALSE(decode_transparency(file(name), "it").has_value()) << name;
}

TEST(PictureFile, TakesBlackAndWhiteAsPillowDoesWhateverIsTransparent) {
  for (const auto* const name : {"clear.png", "clear.webp", "clear_grey.png", "palette.png"}) {
    const auto want =
        decode_png(file(name + ".levels.png"s), "expected", kMaxPixels, without_transparency);
    const auto got = luma(decode_meaning(file(name), name)), wanted = luma(want);
    ASSERT_EQ(got.size(), wanted.size()) << name;
    // Pillow rounds the colours of a palette down
    const int most = name == "palette.png"sv ? 1 : 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(std::abs(got[i] - wanted[i]), most) << name << " at " << i;
  }
  const auto photo = file("turned6.jpg");
  EXPECT_EQ(decode_meaning(photo, "it").rgb, decode_picture(photo, "it").rgb);
}

TEST(PictureFile, RefusesAnimations) {
  for (const auto* const name : {"animated.webp", "animated.png"})
    EXPECT_THAT(refusal(file(name)), HasSubstr("give one picture"));
}

TEST(PictureFile, RefusesWhatIsNoPicture) {
  const auto sentence = "it should be a PNG, JPEG or WebP picture, it is none of these";
  for (const auto& bytes : {"a text file"s, "RIFF"s}) EXPECT_EQ(refusal(bytes), sentence);
  EXPECT_EQ(refusal(file("animated.gif")),
            "it should be a PNG, JPEG or WebP picture, it is a GIF picture");
  EXPECT_THAT(refusal("<html>"), HasSubstr("it is a web page (HTML)"));
  EXPECT_EQ(refusal(""), "it should be a picture, it is empty");
}

TEST(PictureFile, RefusesTooManyPixelsByTheHeader) {
  for (const auto* const name : {"plain.jpg", "lossy.webp", "clear.png"}) {
    EXPECT_THAT(refusal(file(name), 100), HasSubstr("pixels, at most 100 are read"));
    EXPECT_EQ(refusal(file(name), 1000), "");
  }
  EXPECT_THAT(refusal(png_of(ihdr(100'000, 100'000, 8, 2), "\0\x01\x02\x03"sv)),
              HasSubstr("it is too large: 100000x100000 pixels"));
}

// libjpeg warns of them, and Pillow shows the same pixels: numbers in a sequential scan's header
// that mean nothing there (Samsung's cameras write a last coefficient of 0), and a colour transform
// that Adobe does not define.
TEST(PictureFile, TakesJpegsOfUnusualHeaders) {
  const auto plain = file("plain.jpg");
  const auto want = decode_picture(plain, "it").rgb;
  const auto scan = plain.find("\xff\xda");
  const auto spectrum = scan + 2 + std::size_t(std::uint8_t(plain[scan + 3])) - 3;
  ASSERT_EQ(plain.substr(spectrum, 3), "\0\x3f\0"s);
  for (const auto& other : {"\0\0\0"s, "\0\x3f\x11"s, "\x01\x05\x20"s})
    EXPECT_EQ(decode_picture(std::string(plain).replace(spectrum, 3, other), "it").rgb, want);
  ASSERT_EQ(plain.substr(6, 4), "JFIF");
  const auto adobe =
      "\xff\xee\0\x0e"
      "Adobe\0\x64\0\0\0\0\x05"s;
  EXPECT_EQ(decode_picture(std::string(plain).replace(2, 18, adobe), "it").rgb, want);
}

// The segments of each scan of a progressive JPEG, and what precedes and follows them.
std::vector<std::string> scans_of(const std::string& jpeg) {
  std::vector<std::string> parts(1);
  for (std::size_t at = 2; jpeg[at + 1] != '\xd9';) {
    auto end = at + 2 + std::size_t(std::uint8_t(jpeg[at + 2]) << 8 | std::uint8_t(jpeg[at + 3]));
    const bool is_scan = jpeg[at + 1] == '\xda';
    while (is_scan && (jpeg[end] != '\xff' || jpeg[end + 1] == '\0')) ++end;
    parts.back() += jpeg.substr(at, end - at);
    if (is_scan || jpeg[at + 1] == '\xc2') parts.emplace_back();
    at = end;
  }
  return parts;
}

// Pillow shows the same pixels if a scan is repeated that brings coefficients of the precision that
// they have: first scans, and refined DC coefficients. It shows others, 20 to 90 levels apart,
// after AC coefficients are refined again, and if a scan is missing that others refine.
TEST(PictureFile, TakesJpegsThatRepeatAScan) {
  const auto jpeg = file("progressive.jpg");
  const auto want = decode_picture(jpeg, "it").rgb;
  const auto scans = scans_of(jpeg);
  ASSERT_EQ(scans.size(), 12u) << "libjpeg's ten";
  const auto with = [&](std::size_t number, int times) {
    auto file = "\xff\xd8"s;
    for (std::size_t i = 0; i < scans.size(); ++i)
      for (int k = 0; k < (i == number ? times : 1); ++k) file += scans[i];
    return file + "\xff\xd9";
  };
  EXPECT_EQ(decode_picture(with(1, 1), "it").rgb, want);
  for (const std::size_t number : {1u, 2u, 3u, 4u, 5u, 7u})
    EXPECT_EQ(decode_picture(with(number, 2), "it").rgb, want) << number;
  for (const std::size_t number : {6u, 8u, 9u, 10u})
    EXPECT_THAT(refusal(with(number, 2)), HasSubstr("it is a damaged JPEG")) << number;
  for (const std::size_t number : {1u, 2u, 3u, 4u, 5u, 6u})
    EXPECT_THAT(refusal(with(number, 0)), HasSubstr("it is a damaged JPEG")) << number;
}

TEST(PictureFile, NamesPngsThatWereChangedAsText) {
  const auto png = file("clear.png");
  const auto rest = png.substr(8);
  for (const auto* const begin :
       {"\x89PNG\n\x1a\n", "\x89PNG\r\r\n\x1a\r\n", "\x89PNG\r\x1a\r", "\tPNG\r\n\x1a\n",
        "\xc2\x89PNG\r\n\x1a\n", "\xef\xbf\xbdPNG\r\n\x1a\n"})
    EXPECT_EQ(refusal(begin + rest),
              "it is a damaged PNG: its signature was changed, as by a program that takes it for "
              "text; copy it as a binary file");
  for (std::size_t size = 1; size < 8; ++size)
    EXPECT_EQ(refusal(png.substr(0, size)), "it is a damaged PNG: it ends within its signature");
}

TEST(PictureFile, RefusesAJpegOfEndlessScans) {
  auto jpeg = file("progressive.jpg");
  const auto scan = jpeg.rfind("\xff\xda");
  const auto again = jpeg.substr(scan, jpeg.size() - 2 - scan);
  std::string scans;
  for (int i = 0; i < 1000; ++i) scans += again;
  EXPECT_NE(refusal(jpeg.insert(jpeg.size() - 2, scans)), "");
}

TEST(Orientation, IsUprightWhereNothingCanBeRead) {
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation("II*\0\xff\xff\xff\xff"sv), 1);
  EXPECT_EQ(exif_orientation("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"sv), 6);
  EXPECT_EQ(exif_orientation("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0"sv), 1);
  EXPECT_EQ(exif_orientation("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0"sv), 3);
  EXPECT_EQ(exif_orientation("MM\0*\0\0\0\x08\xff\xff\x01\x12\0\x03"sv), 1);
}

// The pixels are 1 2 over 3 4 over 5 6.
TEST(Orientation, TurnsAndMirrors) {
  const auto turned = [](int orientation) {
    Pixels in{2, 3, {}};
    for (std::uint8_t v = 1; v <= 6; ++v) in.rgb.insert(in.rgb.end(), 3, v);
    const auto out = upright(in, orientation);
    std::vector<int> first_channel = {out.width};
    for (std::size_t i = 0; i < out.rgb.size(); i += 3) first_channel.push_back(out.rgb[i]);
    return first_channel;
  };
  EXPECT_THAT(turned(1), ElementsAre(2, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(turned(2), ElementsAre(2, 2, 1, 4, 3, 6, 5));
  EXPECT_THAT(turned(3), ElementsAre(2, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(turned(6), ElementsAre(3, 5, 3, 1, 6, 4, 2));
  EXPECT_THAT(turned(8), ElementsAre(3, 2, 4, 6, 1, 3, 5));
}

}  // namespace braid::picture_file_test
