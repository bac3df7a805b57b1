// Numbers for people: three significant digits, whatever rounding does to a nine.
#include "base/readable_bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

namespace braid::readable_bytes_test {

TEST(ThreeDigits, StayThreeWhereRoundingAddsOne) {
  EXPECT_EQ(three_digits(0.99949), "0.999");
  EXPECT_EQ(three_digits(0.9996), "1.00");
  EXPECT_EQ(three_digits(9.9949), "9.99");
  EXPECT_EQ(three_digits(9.996), "10.0");
  EXPECT_EQ(three_digits(99.949), "99.9");
  EXPECT_EQ(three_digits(99.96), "100");
  EXPECT_EQ(three_digits(1234), "1234");
  EXPECT_EQ(three_digits(0), "0.000");
}

TEST(ThreeDigits, OfNegativeNumbersAreThoseOfTheirSize) {
  for (const double value : {0.0523, 0.9996, 5.234, 9.996, 52.34, 99.96, 523.4})
    EXPECT_EQ(three_digits(-value), "-" + three_digits(value));
}

// Half a unit of the third digit; bytes themselves are whole.
TEST(ReadableBytes, AreRightToThreeDigitsInTheUnitThatPeopleExpect) {
  const std::map<std::string, double> units = {
      {"bytes", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  for (double bytes = 1; bytes < 9e14; bytes = std::ceil(bytes * 1.0137)) {
    double number = 0;
    std::string unit;
    std::istringstream(readable_bytes(bytes)) >> number >> unit;
    ASSERT_TRUE(units.contains(unit)) << unit;
    EXPECT_NEAR(number * units.at(unit), bytes, 0.005001 * bytes) << bytes;
    EXPECT_GE(number, 1) << bytes;
    EXPECT_TRUE(number < 1000 || unit == "TB") << bytes;
  }
}

TEST(ReadableBytes, ChangeTheirUnitWhereRoundingWouldNeedAFourthDigit) {
  EXPECT_EQ(readable_bytes(999), "999 bytes");
  EXPECT_EQ(readable_bytes(999'499), "999 kB");
  EXPECT_EQ(readable_bytes(999'600), "1.00 MB");
  EXPECT_EQ(readable_bytes(999'600'000'000), "1.00 TB");
  EXPECT_EQ(readable_bytes(5e15), "5000 TB");
}

}  // namespace braid::readable_bytes_test
