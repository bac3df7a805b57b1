#include <gmock/gmock.h>

#include "base/error.h"
#include "image/png.h"
#include "make_png.h"
#include "message_of.h"

namespace braid::png_text_test {

using namespace std::literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string with(const std::string& chunks) {
  return png_of(ihdr(1, 1, 8, 2), "\0\x01\x02\x03"sv, chunks);
}

PngText text_of_png(const std::string& chunks) { return read_png_text(with(chunks), "a.png"); }

std::string refusal(const std::string& chunks) {
  return message_of([&] { text_of_png(chunks); });
}

TEST(PngText, IsEmptyWithoutText) { EXPECT_THAT(text_of_png(""), ElementsAre()); }

TEST(PngText, ReadsAllThreeKinds) {
  const auto text = text_of_png(chunk("tEXt", "plain\0caf\xe9"s) +
                                chunk("zTXt", "packed\0\0"s + packed("\xe9\xe9")) +
                                chunk("iTXt", "utf8\0\0\0en\0\0\xe7\xb4\x85"s) +
                                chunk("iTXt", "both\0\1\0\0\0"s + packed("\xe7\xb4\x85")));
  EXPECT_THAT(text, ElementsAre(Pair("plain", "caf\u00e9"), Pair("packed", "\u00e9\u00e9"),
                                Pair("utf8", "\u7d05"), Pair("both", "\u7d05")));
}

TEST(PngText, ReadsTextBehindThePixelsToo) {
  const auto png = "\x89PNG\r\n\x1a\n" + ihdr(1, 1, 8, 2) + chunk("tEXt", "a\0b"s) +
                   chunk("IDAT", "never unpacked") + chunk("tEXt", "c\0d"s) + chunk("IEND", "");
  EXPECT_THAT(read_png_text(png, "a.png"), ElementsAre(Pair("a", "b"), Pair("c", "d")));
}

TEST(PngText, RefusesMalformedChunks) {
  for (const auto& bad :
       {chunk("tEXt", "no end of the key"), chunk("tEXt", ""), chunk("zTXt", "key\0"s),
        chunk("zTXt", "key\0\1"s + packed("x")), chunk("iTXt", "key\0"s),
        chunk("iTXt", "key\0\0\0en"s), chunk("iTXt", "key\0\0\0\0\0\xff"s)}) {
    EXPECT_THAT(refusal(bad), HasSubstr("a.png is a damaged PNG: a ")) << bad;
  }
}

TEST(PngText, RefusesTextThatDoesNotUnpack) {
  const auto whole = packed(std::string(5000, 'x'));
  EXPECT_THAT(refusal(chunk("zTXt", "key\0\0garbage"s)), HasSubstr("cannot be decompressed"));
  EXPECT_THAT(refusal(chunk("zTXt", "key\0\0"s + whole.substr(0, whole.size() / 2))),
              HasSubstr("cannot be decompressed"));
}

TEST(PngText, RefusesTextThatUnpacksToTooMuch) {
  const auto bomb = packed(std::string(50'000'000, 'x'));
  EXPECT_THAT(refusal(chunk("zTXt", "key\0\0"s + bomb)), HasSubstr("1048576 bytes of text"));
  EXPECT_THAT(refusal(chunk("iTXt", "key\0\1\0\0\0"s + bomb)), HasSubstr("1048576 bytes"));
  const auto large = chunk("zTXt", "key\0\0"s + packed(std::string(600'000, 'x')));
  EXPECT_EQ(refusal(large), "");
  EXPECT_THAT(refusal(large + large), HasSubstr("1048576 bytes of text"));
}

TEST(PngText, StopsUnpackingAtTheLimit) {
  auto bomb = packed(std::string(50'000'000, 'x'));
  bomb[bomb.size() / 2] = char(~bomb[bomb.size() / 2]);  // only reached without a limit
  EXPECT_THAT(refusal(chunk("zTXt", "key\0\0"s + bomb)), HasSubstr("1048576 bytes of text"));
}

TEST(PngText, IsReadWithoutItsBadEntriesWhereThatIsAskedFor) {
  const auto readable = [](const std::string& chunks) {
    return readable_png_text(with(chunks), "a.png");
  };
  const auto first = chunk("tEXt", "a\0b"s), last = chunk("tEXt", "c\0d"s);
  const auto large = std::string(1'200'000, 'x');
  for (const auto& bad : {chunk("tEXt", "no end of the key"), chunk("iTXt", "key\0\0\0\0\0\xff"s),
                          chunk("zTXt", "key\0\0garbage"s), chunk("tEXt", "key\0"s + large),
                          chunk("zTXt", "key\0\0"s + packed(large))})
    EXPECT_THAT(readable(first + bad + last), ElementsAre(Pair("a", "b"), Pair("c", "d")));
  const auto half = chunk("zTXt", "key\0\0"s + packed(std::string(600'000, 'x')));
  EXPECT_EQ(readable(half + half + last).size(), 2u) << "within the limit together";
  std::string many;
  for (int i = 0; i < 16; ++i) many += chunk("tEXt", "no end");
  EXPECT_THAT(readable(first + many + last), ElementsAre(Pair("a", "b")));
  EXPECT_THAT(message_of([] { readable_png_text("\x88PNG", "a.png"); }), HasSubstr("not a PNG"));
}

TEST(PngText, FindsDamageByTheChecksum) {
  auto png = with(chunk("tEXt", "key\0value"s));
  png[png.find("value")] = 'w';
  try {
    read_png_text(png, "a.png");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(), "a.png is a damaged PNG: a checksum does not match");
  }
}

TEST(PngText, NamesTheFileThatIsNoPng) {
  try {
    read_png_text("GIF89a", "picture.gif");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(), "picture.gif is not a PNG");
  }
}

}  // namespace braid::png_text_test
