// Pictures with alpha: kept by PNG and WebP, on white in a JPEG, carried by what turns, cuts and
// resizes pictures.
#include <gmock/gmock.h>

#include "base/error.h"
#include "image/file_form.h"
#include "image/lossy/lossy_encode.h"
#include "image/orientation.h"
#include "image/over_white.h"
#include "image/picture_file.h"
#include "image/resize.h"

namespace braid::alpha_test {

using testing::ElementsAre;
using testing::ElementsAreArray;

// Six pixels in two rows, from opaque to clear.
const Pixels kPicture{
    .width = 3,
    .height = 2,
    .rgb = {250, 10, 20, 0, 200, 100, 90, 90, 90, 1, 2, 3, 77, 166, 255, 255, 255, 0},
    .alpha = {255, 128, 0, 1, 254, 60}};

std::string encoded_as(FileForm::Format format, const PngText& text = {}) {
  return encoded({.format = format}, kPicture.width, kPicture.height, kPicture.rgb, text,
                 kPicture.alpha);
}

TEST(Alpha, IsInAPngAsItWas) {
  const auto read =
      decode_picture(encoded_as(FileForm::Format::kPng), "it", kMaxPixels, with_alpha);
  EXPECT_EQ(read.rgb, kPicture.rgb);
  EXPECT_EQ(read.alpha, kPicture.alpha);
  EXPECT_EQ(read.channels(), 4);
}

// Lossy colours, but alpha without loss.
TEST(Alpha, IsInAWebpAsItWas) {
  for (const auto& text : {PngText(), PngText{{"prompt", "a star"}}}) {
    const auto bytes = encoded_as(FileForm::Format::kWebp, text);
    EXPECT_EQ(decode_picture(bytes, "it", kMaxPixels, with_alpha).alpha, kPicture.alpha);
    EXPECT_EQ(read_picture_text(bytes, "it"), text);
  }
}

TEST(Alpha, IsWhiteInAJpeg) {
  const auto opaque = over_white(kPicture);
  EXPECT_EQ(opaque.channels(), 3);
  EXPECT_EQ(encoded_as(FileForm::Format::kJpeg), encode_jpeg(3, 2, opaque.rgb, 100));
  // 8 bits as Pillow pastes: (200 * 128 + 255 * 127) / 255, rounded
  EXPECT_EQ(opaque.rgb[4], 227);
  EXPECT_EQ(std::vector(opaque.rgb.begin() + 6, opaque.rgb.begin() + 9),
            (std::vector<std::uint8_t>{255, 255, 255}));
}

// A lossy file, too, holds the picture on white.
TEST(Alpha, IsWhiteInAnOpaqueFileOfAnyFormat) {
  const auto opaque = over_white(kPicture);
  using Format = FileForm::Format;
  for (const auto format : {Format::kPng, Format::kWebp, Format::kJpeg}) {
    const FileForm plain{.format = format};
    FileForm form = plain;
    form.is_opaque = true;
    EXPECT_EQ(encoded(form, 3, 2, kPicture.rgb, {}, kPicture.alpha),
              encoded(plain, 3, 2, opaque.rgb));
  }
}

TEST(Alpha, IsLeftOutWhereAllIsOpaque) {
  const RgbaPixels opaque{.width = 1, .height = 1, .rgba = {1, 2, 3, 255}};
  EXPECT_EQ(with_alpha(opaque).channels(), 3);
  EXPECT_THAT(with_alpha(opaque).rgb, ElementsAre(1, 2, 3));
  const auto png = encode_png(3, 2, kPicture.rgb);
  EXPECT_EQ(decode_picture(png, "it", kMaxPixels, with_alpha).channels(), 3);
}

TEST(Alpha, IsRefusedInAnotherNumberThanThePixels) {
  EXPECT_THROW(encode_png(3, 2, kPicture.rgb, {}, std::vector<std::uint8_t>(5)), InputError);
  EXPECT_THROW(encode_webp_with_alpha(3, 2, kPicture.rgb, 90), InputError);
}

TEST(Alpha, IsTurnedAndCutWithItsPixels) {
  EXPECT_THAT(upright(kPicture, 6).alpha, ElementsAre(1, 255, 254, 128, 60, 0));
  EXPECT_THAT(upright(kPicture, 3).alpha, ElementsAre(60, 254, 1, 0, 128, 255));
  EXPECT_THAT(cropped(kPicture, 1, 0, 2, 2).alpha, ElementsAre(128, 0, 254, 60));
}

}  // namespace braid::alpha_test
