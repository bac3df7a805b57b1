#include "base/ascii.h"

#include <gtest/gtest.h>

namespace braid::ascii_test {

TEST(Ascii, LowersLettersAlone) {
  EXPECT_EQ(ascii_lower_case("Content-TYPE [AZ@`{]"), "content-type [az@`{]");
  EXPECT_EQ(ascii_lower_case("\xc3\x84"), "\xc3\x84") << "a letter, but none of ASCII";
}

TEST(Ascii, HasLettersAndDigitsWhateverTheLocaleIs) {
  std::string found;
  for (int c = 0; c < 256; ++c)
    if (is_ascii_alphanumeric(char(c))) found += char(c);
  EXPECT_EQ(found, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  EXPECT_TRUE(is_ascii_letter('z') && is_ascii_digit('9'));
  EXPECT_FALSE(is_ascii_letter('9') || is_ascii_digit('z'));
}

TEST(Ascii, TrimsBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\t "), "a b");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed("\n"), "\n");
}

}  // namespace braid::ascii_test
