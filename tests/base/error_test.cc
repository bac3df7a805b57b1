// An error states the wish and the fact. If this fails, look in base/error.h.
#include "base/error.h"

#include <gtest/gtest.h>

#include <locale>

#include "base/text_stream.h"

namespace braid::error_test {

TEST(Check, IsSilentWhenTheConditionHolds) {
  EXPECT_NO_THROW(check(true, "never read"));
  EXPECT_NO_THROW(require(true, "never read"));
}

TEST(Check, SaysWhatWasExpectedAndWhatCame) {
  try {
    check(false, "cannot split dim ", 1, " over ", 2, " ranks");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot split dim 1 over 2 ranks");
  }
}

// Names in files may hold one.
TEST(Sentences, DoNotEndAtANul) {
  EXPECT_EQ(text_of("'a", std::string(1, '\0'), "b' is ", 1), "'a b' is 1");
}

// A program that uses the library may write numbers in its own way.
class InALocaleOfItsOwn : public testing::Test {
 protected:
  struct Punctuation : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  ~InALocaleOfItsOwn() override { std::locale::global(before_); }

  std::locale before_ = std::locale::global(std::locale(std::locale(), new Punctuation));
};

TEST_F(InALocaleOfItsOwn, NumbersAreWrittenAndReadAsEverywhere) {
  std::ostringstream own;
  own << 16384 << " " << 0.5;
  ASSERT_EQ(own.str(), "16.384 0,5");
  EXPECT_EQ(text_of("should lie between 16 and ", 16384, ", not ", 0.5),
            "should lie between 16 and 16384, not 0.5");
  TextWriter out;
  out << 1024 << "x" << 1024;
  EXPECT_EQ(out.str(), "1024x1024");
  double half = 0;
  int thousands = 0;
  TextReader("0.5 16384") >> half >> thousands;
  EXPECT_EQ(half, 0.5);
  EXPECT_EQ(thousands, 16384);
}

TEST(Require, ThrowsTheErrorOfBadInput) { EXPECT_THROW(require(false, "no"), InputError); }

}  // namespace braid::error_test
