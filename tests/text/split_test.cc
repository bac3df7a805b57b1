#include "text/split.h"

#include <gmock/gmock.h>

namespace braid::text::split_test {

using testing::ElementsAre;

std::vector<std::string> parts(const std::string& text, Delimiter delimiter, bool invert = false) {
  const auto is_dash = [](char32_t c) { return c == '-'; };
  const auto spans = spans_of(text, is_dash);
  std::vector<TextPiece> pieces;
  split({.text = text}, invert ? inverted(spans) : spans, delimiter, pieces);
  std::vector<std::string> out;
  for (const auto& piece : pieces) out.push_back(piece.text);
  return out;
}

// The example from the reference's documentation.
TEST(Split, DoesWithDelimitersAsItIsTold) {
  const std::string text = "the-final--countdown";
  EXPECT_THAT(parts(text, Delimiter::removed), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(parts(text, Delimiter::isolated),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(parts(text, Delimiter::merged_with_previous),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(parts(text, Delimiter::merged_with_next),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(parts(text, Delimiter::contiguous),
              ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(Split, HandlesDelimitersAtTheEnds) {
  EXPECT_THAT(parts("-a-", Delimiter::merged_with_previous), ElementsAre("-", "a-"));
  EXPECT_THAT(parts("-a-", Delimiter::merged_with_next), ElementsAre("-a", "-"));
  EXPECT_THAT(parts("--", Delimiter::merged_with_next), ElementsAre("-", "-"));
  EXPECT_THAT(parts("--", Delimiter::contiguous), ElementsAre("--"));
  EXPECT_THAT(parts("", Delimiter::isolated), ElementsAre());
}

TEST(Split, TurnsMatchesAndGapsAround) {
  EXPECT_THAT(parts("a-b", Delimiter::removed, true), ElementsAre("-"));
  EXPECT_THAT(parts("a-b", Delimiter::merged_with_next, true), ElementsAre("a-", "b"));
}

TEST(Split, CoversTheTextWithSpans) {
  const auto spans = spans_of("xaay", std::vector<Match>{{0, 0}, {1, 2}, {2, 3}});
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[0].end, 0u);  // an empty match counts, too
  EXPECT_TRUE(spans[0].is_match);
  EXPECT_FALSE(spans[1].is_match);
  EXPECT_EQ(spans[4].begin, 3u);
}

TEST(Split, KnowsWhichPieceBeginsTheText) {
  std::vector<TextPiece> pieces;
  split({.text = "a-b", .at_start = true}, spans_of("a-b", std::vector<Match>{{1, 2}}),
        Delimiter::removed, pieces);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_TRUE(pieces[0].at_start);
  EXPECT_FALSE(pieces[1].at_start);
}

}  // namespace braid::text::split_test
