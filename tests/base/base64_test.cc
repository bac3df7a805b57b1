#include "base/base64.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace braid::base64_test {

using namespace std::literals;

// RFC 4648, section 10
TEST(Base64, IsThatOfTheRfc) {
  for (const auto& [bytes, text] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"fooba", "Zm9vYmE="},
                                                        {"foobar", "Zm9vYmFy"},
                                                        {"\xff\xfe", "//4="}}) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, IsAppended) {
  std::string text = "x";
  append_base64(text, "foob");
  EXPECT_EQ(text, "xZm9vYg==");
}

TEST(Base64, IsReadInLinesAndInTheAlphabetForUrls) {
  EXPECT_EQ(decode_base64("Zm9v\r\nYmE=\n"), "fooba") << "as base64(1) writes";
  EXPECT_EQ(decode_base64("__4"), "\xff\xfe");
  EXPECT_EQ(decode_base64("--4="), "\xfb\xee");
}

TEST(Base64, IsRefusedWithOtherCharactersOrPartsOfAByte) {
  for (const auto* const text : {"Zm%9v", "Z!==", "=Zg=", "Zm\vv", "\xc3\xa9", "x", "Zm9vY"})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

// WHATWG's forgiving-base64 removes them, of Infra's ASCII whitespace.
TEST(Base64, IsReadWithWhitespaceAnywhere) {
  for (const auto* const text :
       {" Zm9vYg==", "Zm9v Yg==", "Zm\t9vYg\f==", "Zm9vYg= =", "Zm9vYg==\r\n \t"})
    EXPECT_EQ(decode_base64(text), "foob") << text;
  EXPECT_EQ(decode_base64(" \n"), "");
}

TEST(Base64, TellsWhichCharacterIsForeign) {
  EXPECT_EQ(foreign_in_base64("Zm 9%v"), 4u);
  EXPECT_EQ(foreign_in_base64("=Zg="), 0u);
  EXPECT_EQ(foreign_in_base64("Zm9v\0"s), 4u);
  EXPECT_EQ(foreign_in_base64("Zm9v\nY"), std::nullopt) << "a part of a byte";
}

}  // namespace braid::base64_test
