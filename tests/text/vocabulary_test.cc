#include "text/vocabulary/vocabulary.h"

#include <gmock/gmock.h>

#include "text/vocabulary/trie.h"

namespace braid::text::vocabulary_test {

using testing::ElementsAre;

TEST(Vocabulary, FindsWhatWasInserted) {
  Vocabulary v;
  EXPECT_EQ(v.find("a"), std::nullopt);
  EXPECT_EQ(v.end_id(), 0);
  EXPECT_TRUE(v.insert("a", 7));
  EXPECT_TRUE(v.insert("", 3));
  EXPECT_TRUE(v.insert(std::string_view("a\0", 2), 5));
  EXPECT_EQ(v.find("a"), 7);
  EXPECT_EQ(v.find(""), 3);
  EXPECT_EQ(v.find(std::string_view("a\0", 2)), 5);
  EXPECT_EQ(v.find("b"), std::nullopt);
  EXPECT_EQ(v.size(), 3u);
  EXPECT_EQ(v.end_id(), 8);
}

TEST(Vocabulary, KeepsTheFirstOrTheLastOfEqualTokens) {
  Vocabulary v;
  v.insert("a", 1);
  EXPECT_FALSE(v.insert("a", 2));
  EXPECT_EQ(v.find("a"), 1);
  v.insert_or_assign("a", 9);
  EXPECT_EQ(v.find("a"), 9);
  EXPECT_EQ(v.size(), 1u);
  EXPECT_EQ(v.end_id(), 10);
}

TEST(Vocabulary, GrowsWithoutLosingAnything) {
  Vocabulary v;
  for (int i = 0; i < 20'000; ++i) v.insert("token" + std::to_string(i), i);
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(v.find("token" + std::to_string(i)), i);
  EXPECT_EQ(v.find("token20000"), std::nullopt);
}

std::vector<std::pair<std::size_t, std::uint32_t>> prefixes(const Trie& trie,
                                                            std::string_view text) {
  std::vector<std::pair<std::size_t, std::uint32_t>> out;
  trie.for_each_prefix(text, [&](std::size_t size, std::uint32_t v) { out.emplace_back(size, v); });
  return out;
}

TEST(Trie, VisitsAllKeysThatBeginATextShortestFirst) {
  Trie trie;
  EXPECT_TRUE(trie.insert("ab", 1));
  EXPECT_TRUE(trie.insert("abcd", 2));
  EXPECT_TRUE(trie.insert("é", 3));
  EXPECT_TRUE(trie.insert("a", 4));
  using P = std::pair<std::size_t, std::uint32_t>;
  EXPECT_THAT(prefixes(trie, "abcde"), ElementsAre(P{1, 4}, P{2, 1}, P{4, 2}));
  EXPECT_THAT(prefixes(trie, "éa"), ElementsAre(P{2, 3}));
  EXPECT_THAT(prefixes(trie, "xab"), ElementsAre());
  EXPECT_THAT(prefixes(Trie(), "a"), ElementsAre());
}

TEST(Trie, SaysWhenAKeyIsThereAlready) {
  Trie trie;
  EXPECT_TRUE(trie.insert("ab", 1));
  EXPECT_TRUE(trie.insert("a", 2));
  EXPECT_FALSE(trie.insert("ab", 3));
  using P = std::pair<std::size_t, std::uint32_t>;
  EXPECT_THAT(prefixes(trie, "ab"), ElementsAre(P{1, 2}, P{2, 3}));
}

}  // namespace braid::text::vocabulary_test
