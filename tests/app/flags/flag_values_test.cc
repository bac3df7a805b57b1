// Text of flags to values. The program's own tests cover what is refused.
#include "app/flags/flag_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"

namespace braid::flag_values_test {

using testing::HasSubstr;

TEST(FlagValues, NumbersAreReadWhole) {
  EXPECT_EQ(whole_number("--n", "+7", 1, 10), 7);
  EXPECT_EQ(whole_number("--n", "10", 1, 10), 10);
  for (const auto* const text : {"", "+", "+-3", "--3", "7 ", "0x7", "7.", "11", "0"})
    EXPECT_THROW(whole_number("--n", text, 1, 10), InputError) << text;
}

TEST(FlagValues, SeedsHave64Bits) {
  EXPECT_EQ(seed_number("--seed", "18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(seed_number("--seed", "0"), 0u);
}

TEST(FlagValues, ScalesMayBeWrittenInManyWays) {
  EXPECT_EQ(finite_number("--x", "3.5"), 3.5);
  EXPECT_EQ(finite_number("--x", "-2"), -2);
  EXPECT_EQ(finite_number("--x", "1e1"), 10);
  EXPECT_EQ(finite_number("--x", ".5"), 0.5);
  for (const auto* const text : {"", "infinity", "NaN", "3.5x", "+-3", "e", "1e"})
    EXPECT_THAT(message_of([&] { finite_number("--x", text); }),
                HasSubstr("--x should be a finite number"))
        << text;
  EXPECT_EQ(finite_number("--x", "1e-999"), 0);
}

TEST(FlagValues, NumbersThatAreTooLargeAreSaidToBe) {
  EXPECT_EQ(finite_number("--x", "3e38"), 3e38);
  for (const auto* const text : {"1e39", "-1e39", "1e308", "1e999", "-1e999"})
    EXPECT_THAT(message_of([&] { finite_number("--x", text); }),
                HasSubstr("--x is too large: it should be at most 3.4e38"))
        << text;
}

TEST(FlagValues, ListsMayHaveSpacesAroundTheirCommas) {
  EXPECT_EQ(number_list("--x", "1, 0.5 ,0"), (std::vector<double>{1, 0.5, 0}));
  EXPECT_EQ(split_at_commas("a b, c"), (std::vector<std::string>{"a b", "c"}));
  for (const auto* const text : {"", "1,", ",1", "1, ,2", "1,x", "1;2", "1,nan"})
    EXPECT_THAT(message_of([&] { number_list("--x", text); }),
                HasSubstr("--x should be a list of numbers separated by commas, as in 1,0.5"))
        << text;
  EXPECT_THAT(message_of([&] { number_list("--x", "1,1e308"); }), HasSubstr("--x is too large"));
}

TEST(FlagValues, SizesAreWidthThenHeight) {
  const auto size = picture_size("--size", "640X480");
  EXPECT_EQ(size.width, 640);
  EXPECT_EQ(size.height, 480);
}

TEST(FlagValues, ChoicesAreNamedInTheComplaint) {
  const Choices<int> choices = {{"one", 1}, {"two", 2}};
  EXPECT_EQ(choice<int>("--c", "two", choices), 2);
  try {
    choice<int>("--c", "three", choices);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "--c should be one of one, two, it is 'three'");
  }
}

}  // namespace braid::flag_values_test
