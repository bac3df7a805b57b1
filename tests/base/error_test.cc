// An error states the wish and the fact. If this fails, look in base/error.h.
#include "base/error.h"

#include <gtest/gtest.h>

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

TEST(Require, ThrowsTheErrorOfBadInput) { EXPECT_THROW(require(false, "no"), InputError); }

}  // namespace braid::error_test
