#include "base/hexadecimal.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace braid::hexadecimal_test {

TEST(Hexadecimal, WritesAllDigitsOfATypeInLowerCase) {
  EXPECT_EQ(hex_digits(std::uint64_t(0xabc)), "0000000000000abc");
  EXPECT_EQ(hex_digits(std::uint32_t(0x89abcdef)), "89abcdef");
  EXPECT_EQ(hex_digits(std::uint8_t(7)), "07");
  EXPECT_EQ(hex_digit(15), 'f');
}

TEST(Hexadecimal, ReadsDigitsOfBothCases) {
  EXPECT_EQ(hex_value('9'), 9);
  EXPECT_EQ(hex_value('f'), 15);
  EXPECT_EQ(hex_value('A'), 10);
  for (const char c : {'g', 'G', '/', ':', '@', '`', '\0', '\xe6'}) EXPECT_EQ(hex_value(c), -1);
}

}  // namespace braid::hexadecimal_test
