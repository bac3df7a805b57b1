#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "base/error.h"
#include "image/png.h"
#include "image/png_chunks.h"
#include "message_of.h"

namespace braid::png_encode_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<std::uint8_t> noise(int width, int height) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> rgb(std::size_t(width) * height * 3);
  for (auto& value : rgb) value = std::uint8_t(random());
  return rgb;
}

std::vector<std::string_view> types_of(std::string_view png) {
  std::vector<std::string_view> types;
  for (const auto& chunk : png_chunks(png, "a.png")) types.push_back(chunk.type);
  return types;
}

class PngSizes : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PngSizes, ComeBackAsTheyWere) {
  const auto [width, height] = GetParam();
  const auto rgb = noise(width, height);
  const auto image = decode_png(encode_png(width, height, rgb), "a.png");
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.height, height);
  EXPECT_EQ(image.rgb, rgb);
}

INSTANTIATE_TEST_SUITE_P(Png, PngSizes,
                         testing::Values(std::pair(1, 1), std::pair(1, 7), std::pair(7, 1),
                                         std::pair(16, 16), std::pair(33, 17), std::pair(320, 192),
                                         std::pair(4097, 3)));

TEST(PngEncode, GivesTheSameBytesForTheSamePicture) {
  const auto rgb = noise(20, 10);
  EXPECT_EQ(encode_png(20, 10, rgb, {{"seed", "1"}}), encode_png(20, 10, rgb, {{"seed", "1"}}));
}

TEST(PngEncode, RefusesSizesThatAreNone) {
  const std::vector<std::uint8_t> rgb(12);
  for (const auto& [width, height] :
       {std::pair(0, 2), std::pair(2, 0), std::pair(-2, 2), std::pair(65537, 1),
        std::pair(std::numeric_limits<int>::max(), std::numeric_limits<int>::max())}) {
    EXPECT_THAT(message_of([&] { encode_png(width, height, rgb); }), HasSubstr("1 to 65536"));
  }
  EXPECT_THAT(message_of([&] { encode_png(2, 3, rgb); }),
              testing::StrEq("a 2x3 picture should have 18 values, it has 12"));
}

TEST(PngEncode, WritesLatin1AsPlainTextAndTheRestAsUtf8) {
  const PngText text = {{"prompt", "a caf\u00e9"}, {"other", "\u7d05\u3044\u5186 \U0001f534"}};
  const auto png = encode_png(1, 1, noise(1, 1), text);
  EXPECT_THAT(types_of(png), ElementsAre("IHDR", "tEXt", "iTXt", "IDAT", "IEND"));
  EXPECT_EQ(read_png_text(png, "a.png"), text);
}

TEST(PngEncode, KeepsEmptyValuesLineBreaksAndLongTexts) {
  const PngText text = {{"empty", ""},
                        {"lines", "one\ntwo\r\n\tthree"},
                        {"again", "1"},
                        {"again", "2"},
                        {"long", std::string(100'000, 'x')},
                        {"caf\u00e9", "the key"},
                        {"macron", "\u00ff\u0100"}};
  EXPECT_EQ(read_png_text(encode_png(1, 1, noise(1, 1), text), "a.png"), text);
}

TEST(PngEncode, RefusesKeysThatPngsDoNotHave) {
  const auto encode = [](const std::string& key) {
    return message_of([&] { encode_png(1, 1, noise(1, 1), {{key, "value"}}); });
  };
  EXPECT_EQ(encode(std::string(79, 'k')), "");
  for (const std::string& key :
       {std::string(80, 'k'), std::string(), std::string(" k"), std::string("k "),
        std::string("a  b"), std::string("a\nb"), std::string("a\x7f"), std::string("\u7d05")}) {
    EXPECT_THAT(encode(key), HasSubstr("1 to 79 Latin-1 characters")) << key;
  }
}

TEST(PngEncode, RefusesTextThatIsNotUtf8OrHoldsNul) {
  const auto encode = [](const std::string& value) {
    return message_of([&] { encode_png(1, 1, noise(1, 1), {{"prompt", value}}); });
  };
  EXPECT_THAT(encode("\xff"), HasSubstr("should be UTF-8"));
  EXPECT_THAT(encode("\xed\xa0\x80"), HasSubstr("should be UTF-8"));  // half of a surrogate pair
  EXPECT_THAT(encode(std::string("a\0b", 3)), HasSubstr("NUL"));
}

TEST(PngEncode, KnowsWhichTextItCanWrite) {
  const PngText good = {{"a", "\u7d05"}, {"caf\u00e9", ""}};
  auto text = good;
  text.insert(text.begin() + 1, {{std::string(80, 'k'), "b"},
                                 {"\u7d05", "b"},
                                 {"", "b"},
                                 {"k", std::string("a\0b", 3)},
                                 {"k", "\xff"}});
  EXPECT_EQ(writable_text(text), good);
}

}  // namespace braid::png_encode_test
