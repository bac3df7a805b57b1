#include "base/utf8.h"

#include <gtest/gtest.h>

namespace braid::utf8_test {

// The first and the last code of each length, and those beside the surrogates.
TEST(Utf8, ReadsWhatItHasWritten) {
  for (const char32_t code :
       {0x0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfffd, 0xffff, 0x10000, 0x10ffff}) {
    std::string text = "a";
    append_utf8(text, code);
    const auto character = decode_utf8(text, 1);
    EXPECT_EQ(character.code, code);
    EXPECT_EQ(character.size, text.size() - 1) << std::uint32_t(code);
    EXPECT_TRUE(is_valid_utf8(text)) << std::uint32_t(code);
  }
  std::string text;
  append_utf8(text, U'é');
  append_utf8(text, U'€');
  append_utf8(text, U'😀');
  EXPECT_EQ(text, "é€😀");
}

TEST(Utf8, IsRecognised) {
  for (const char* good : {"", "a", "é", "€", "😀", "\xF4\x8F\xBF\xBF", "\xEF\xBF\xBD"})
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  EXPECT_TRUE(is_valid_utf8(std::string_view("a\0b", 3)));
  for (const char* bad : {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF5\x80\x80\x80", "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xC1\xBF",
                          "\xFE", "a\xFF", "\xE2\x82", "\xF0\x9F\x98", "\xE2\x28\xA1"})
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
}

TEST(Utf8, StepsOverBadBytesOneByOne) {
  EXPECT_EQ(decode_utf8("\xE2\x82", 0).code, U'\uFFFD');
  EXPECT_EQ(decode_utf8("\xE2\x82", 0).size, 1u);
  EXPECT_EQ(decode_utf8("\xED\xA0\x80", 0).size, 1u) << "a surrogate";
}

TEST(Utf8, IsMadeOfAnyBytes) {
  EXPECT_EQ(as_valid_utf8("aé€😀"), "aé€😀");
  EXPECT_EQ(as_valid_utf8("a\xFF\xE2\x82z"), "a\uFFFD\uFFFD\uFFFDz");
  EXPECT_EQ(as_valid_utf8(""), "");
}

TEST(Utf8, CountsCharacters) {
  EXPECT_EQ(num_characters(""), 0u);
  EXPECT_EQ(num_characters("aé€😀"), 4u);
}

}  // namespace braid::utf8_test
