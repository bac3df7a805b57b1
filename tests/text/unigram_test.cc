#include "text/vocabulary/unigram.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::unigram_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> ids(const Unigram& unigram, std::string_view text) {
  std::vector<std::int64_t> out;
  unigram.encode(text, out);
  return out;
}

// The example from the reference's documentation.
TEST(Unigram, FindsTheLikeliestCut) {
  const Unigram model({{"<unk>", 0},
                       {"a", 0},
                       {"b", 0},
                       {"c", 0},
                       {"d", 0},
                       {"cd", 1},
                       {"ab", 2},
                       {"abc", 5},
                       {"abcd", 10}},
                      {.unk_id = 0}, "t");
  EXPECT_THAT(ids(model, "abcdacdxx"), ElementsAre(8, 1, 5, 0));
  EXPECT_THAT(ids(model, ""), ElementsAre());
}

TEST(Unigram, KeepsTheFirstOfEquallyGoodCuts) {
  const Unigram model({{"<unk>", -9}, {"a", -1}, {"b", -1}, {"ab", -2}}, {.unk_id = 0}, "t");
  EXPECT_THAT(ids(model, "ab"), ElementsAre(3));  // reached first
}

TEST(Unigram, MakesOneTokenOfARowOfUnknownCharacters) {
  const Unigram model({{"<unk>", 0}, {"a", -1}}, {.unk_id = 0}, "t");
  EXPECT_THAT(ids(model, "你好a你"), ElementsAre(0, 1, 0));
}

TEST(Unigram, ChargesUnknownCharactersTenMoreThanTheLeastLikelyToken) {
  // "xy" costs 25 as a token, 2 * (20 + 10) as two unknown characters.
  const Unigram cheap({{"<unk>", 0}, {"a", -20}, {"xy", -25}}, {.unk_id = 0}, "t");
  EXPECT_THAT(ids(cheap, "xy"), ElementsAre(2));
  // "zxy" as unk + "xy" beats three unknown ones; they do not fuse.
  EXPECT_THAT(ids(cheap, "zxy"), ElementsAre(0, 2));
}

// "xy" + "ab" costs 20; an unknown "x" + "yab" costs 20 and whatever "yab" does.
TEST(Unigram, ChargesTenAndNothingElse) {
  const auto model = [](double score) {
    return Unigram({{"<unk>", 0}, {"xy", -10}, {"ab", -10}, {"yab", score}}, {.unk_id = 0}, "t");
  };
  EXPECT_THAT(ids(model(-0.5), "xyab"), ElementsAre(1, 2));
  EXPECT_THAT(ids(model(0.5), "xyab"), ElementsAre(0, 3));
}

TEST(Unigram, SpellsUnknownTextInBytesWhenAllOfThemAreTokens) {
  const Unigram model({{"<unk>", 0}, {"a", -1}, {"<0xC3>", -5}, {"<0xA9>", -5}},
                      {.unk_id = 0, .byte_fallback = true}, "t");
  EXPECT_THAT(ids(model, "aé"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids(model, "éè"), ElementsAre(0));
}

TEST(Unigram, CountsTheLastOfEqualTokens) {
  const Unigram model({{"<unk>", 0}, {"a", -1}, {"a", -2}}, {.unk_id = 0}, "t");
  EXPECT_THAT(ids(model, "a"), ElementsAre(2));
  EXPECT_EQ(model.size(), 3u);
}

TEST(Unigram, NeedsAnUnkTokenOnlyForUnknownText) {
  const Unigram model({{"a", -1}}, {}, "t");
  EXPECT_THAT(ids(model, "aa"), ElementsAre(0, 0));
  EXPECT_THAT(message_of([&] { ids(model, "b"); }), HasSubstr("no unk token"));
}

TEST(Unigram, RefusesAnUnkIdThatIsNoToken) {
  EXPECT_THAT(message_of([] {
                Unigram({{"a", 0}}, {.unk_id = 1}, "t.json");
              }),
              HasSubstr("t.json has the unk id 1"));
  EXPECT_THAT(message_of([] { Unigram({}, {}, "t.json"); }), HasSubstr("empty vocabulary"));
  EXPECT_THAT(message_of([] {
                Unigram({{std::string(2000, 'a'), 0}}, {}, "t.json");
              }),
              HasSubstr("t.json has a token of 2000 bytes"));
}

TEST(Unigram, CutsVeryLongTextsInLittleTime) {
  const Unigram model({{"<unk>", 0}, {"a", -1}, {"aaaa", -2}}, {.unk_id = 0}, "t");
  EXPECT_EQ(ids(model, std::string(400'000, 'a')).size(), 100'000u);
}

}  // namespace braid::text::unigram_test
