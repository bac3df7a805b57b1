#include "text/unicode/regex.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::regex_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> found(const std::string& pattern, const std::string& text) {
  std::vector<std::string> out;
  for (const auto& m : Regex(pattern, "t.json").find_all(text))
    out.push_back(text.substr(m.begin, m.end - m.begin));
  return out;
}

TEST(Regex, FindsAllMatchesFromLeftToRight) {
  EXPECT_THAT(found("\\d+", "a1b22c333"), ElementsAre("1", "22", "333"));
  EXPECT_THAT(found("x", "abc"), ElementsAre());
  EXPECT_THAT(found("a", ""), ElementsAre());
  EXPECT_THAT(found("\\s+(?!\\S)|\\s+", "a   b  "), ElementsAre("  ", " ", "  "));
  EXPECT_THAT(found("(?i:'s|'LL)", "it'S he'll"), ElementsAre("'S", "'ll"));
}

TEST(Regex, DropsEmptyMatchesBehindAMatch) {
  EXPECT_THAT(found("a*", "baac"), ElementsAre("", "aa", ""));
  EXPECT_THAT(found("^", "é"), ElementsAre(""));
  EXPECT_THAT(found("$", "é"), ElementsAre(""));
}

TEST(Regex, MatchesCharactersAndNotBytes) {
  EXPECT_THAT(found(".", "é你😀"), ElementsAre("é", "你", "😀"));
  EXPECT_THAT(found("[^\\p{L}]", "é你😀"), ElementsAre("😀"));
}

TEST(Regex, KnowsLettersOfUnicode16InAndOutOfClasses) {
  const std::string han = "\U00031350", garay = "\U00010D50", digit = "\U00010D40";
  EXPECT_THAT(found("\\p{L}", han + garay), ElementsAre(han, garay));
  EXPECT_THAT(found("[^\\s\\p{L}]", han + "!" + garay), ElementsAre("!"));
  EXPECT_THAT(found("\\p{Lu}", han + garay), ElementsAre(garay));
  EXPECT_THAT(found("\\p{N}", digit), ElementsAre(digit));
  EXPECT_THAT(found("[\\w]+", "a" + digit + han), ElementsAre("a" + digit + han));
}

TEST(Regex, LeavesOtherEscapesAlone) {
  for (const char* pattern :
       {"a\\.b", "\\P{L}", "\\p{^L}", "\\p{Han}", "[\\]\\[]", "\\\\p{L", "\\"})
    EXPECT_EQ(with_later_characters(pattern), pattern) << pattern;
  EXPECT_THAT(with_later_characters("\\p{Nl}"), "\\p{Nl}");  // nothing was added to it
  EXPECT_THAT(with_later_characters("x\\p{Lu}"), HasSubstr("x[\\p{Lu}\u1C89-\u1C89"));
  EXPECT_THAT(with_later_characters("[x\\p{Lu}]"), HasSubstr("[x\\p{Lu}\u1C89-\u1C89"));
}

TEST(Regex, NamesThePatternThatItCannotRead) {
  const auto message = message_of([] { Regex("(unclosed", "t.json"); });
  EXPECT_THAT(message, HasSubstr("t.json has the regular expression '(unclosed'"));
  EXPECT_THAT(message_of([] { Regex(std::string(20'000, 'a'), "t.json"); }), HasSubstr("20000"));
  EXPECT_EQ(message_of([] { Regex("(" + std::string(500, 'a'), "t"); }).find(std::string(80, 'a')),
            std::string::npos);
}

TEST(Regex, GivesUpOnExplosionsInsteadOfHanging) {
  const Regex regex("(a+)+$", "t.json");
  EXPECT_THAT(message_of([&] { regex.find_all(std::string(40, 'a') + "b"); }),
              HasSubstr("'(a+)+$' gives up"));
}

TEST(Regex, TakesLongTextsInOneSweep) {
  const Regex words("\\p{L}+|\\s+(?!\\S)|\\s+|[^\\s\\p{L}]", "t.json");
  EXPECT_EQ(words.find_all(std::string(300'000, 'x')).size(), 1u);
  EXPECT_EQ(words.find_all(std::string(300'000, ' ') + "x").size(), 3u);
}

}  // namespace braid::text::regex_test
