#include "base/ascii.h"

#include <gtest/gtest.h>

namespace braid::ascii_test {

TEST(Ascii, LowersLettersAlone) {
  EXPECT_EQ(ascii_lower_case("Content-TYPE [AZ@`{]"), "content-type [az@`{]");
  EXPECT_EQ(ascii_lower_case("\xc3\x84"), "\xc3\x84") << "a letter, but none of ASCII";
}

TEST(Ascii, TrimsBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\t "), "a b");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed("\n"), "\n");
}

}  // namespace braid::ascii_test
