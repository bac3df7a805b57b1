// Numbers and texts as people read them.
#include "app/words/readable.h"

#include <gtest/gtest.h>

namespace braid::readable_test {

TEST(Readable, BytesHaveThreeDigitsThatMeanSomething) {
  EXPECT_EQ(readable_bytes(0), "0 bytes");
  EXPECT_EQ(readable_bytes(999), "999 bytes");
  EXPECT_EQ(readable_bytes(1000), "1.00 kB");
  EXPECT_EQ(readable_bytes(17'250'000), "17.2 MB");
  EXPECT_EQ(readable_bytes(999'499'999'999.), "999 GB");
  EXPECT_EQ(readable_bytes(999'600'000'000.), "1.00 TB");
}

TEST(Readable, CountsHaveSeparators) {
  EXPECT_EQ(readable_count(0), "0");
  EXPECT_EQ(readable_count(999), "999");
  EXPECT_EQ(readable_count(6'352'064), "6,352,064");
  EXPECT_EQ(readable_count(-1000), "-1,000");
  EXPECT_EQ(plural(1, "step"), "1 step");
  EXPECT_EQ(plural(0, "step"), "0 steps");
}

TEST(Readable, DecimalsHaveTheFewestDigitsThatGiveThemBack) {
  EXPECT_EQ(decimal(3.5), "3.5");
  EXPECT_EQ(decimal(4), "4");
  EXPECT_EQ(decimal(0.1), "0.1");
}

TEST(Readable, TimesAreSecondsOrClocks) {
  EXPECT_EQ(readable_seconds(0.0523), "0.052 s");
  EXPECT_EQ(readable_seconds(9.996), "10.0 s");
  EXPECT_EQ(readable_wait(7.4), "0:07");
  EXPECT_EQ(readable_wait(59.6), "1:00");
  EXPECT_EQ(readable_wait(3753), "1:02:33");
  EXPECT_EQ(readable_wait(-1), "0:00");
}

TEST(Readable, OneLineHidesWhatATerminalWouldObey) {
  EXPECT_EQ(one_line("a\nb\tc\x1b[0m\x7f"), "a b c [0m ");
  EXPECT_EQ(one_line("caf\xc3\xa9 \xff\xc3"), "caf\xc3\xa9 ??");
  EXPECT_EQ(one_line("\xc2\x9b"), " ");  // the C1 form of ESC [
  EXPECT_EQ(one_line("\xef\xbf\xbd"), "\xef\xbf\xbd");
}

TEST(Readable, OneLineEndsBetweenCharacters) {
  EXPECT_EQ(one_line("\xc3\xa9\xc3\xa9\xc3\xa9", 5), "\xc3\xa9\xc3\xa9...");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace braid::readable_test
