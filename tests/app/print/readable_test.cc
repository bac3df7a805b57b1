// Numbers and texts as people read them.
#include "app/print/readable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/print/readable_json.h"
#include "has_match.h"

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

TEST(Readable, JsonBecomesAlignedLines) {
  const OrderedJson json = {{"name", "x\ny"},
                            {"free_bytes", 1500},
                            {"inner", {{"parameters", 1234}, {"list", {1, 2}}, {"on", true}}},
                            {"none", nullptr}};
  EXPECT_EQ(readable_json(json),
            "name        x y\n"
            "free_bytes  1.50 kB\n"
            "inner\n"
            "  parameters  1,234\n"
            "  list        1, 2\n"
            "  on          yes\n"
            "none        none\n");
}

TEST(Readable, LongListsAreBroken) {
  const OrderedJson words(std::vector<std::string>(12, "1234567890"));
  const auto text = readable_json({{"key", words}});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text, testing::HasSubstr(",\n     1234567890, "));
  EXPECT_THAT(text, testing::Not(HasMatch("[^\n]{101}")));
}

TEST(Readable, JsonOfPathsThatAreNotUtf8IsStillJson) {
  EXPECT_EQ(indented_json({{"path", "a\xff"}}), "{\n  \"path\": \"a\xef\xbf\xbd\"\n}\n");
}

}  // namespace braid::readable_test
