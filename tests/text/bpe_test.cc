#include "text/vocabulary/bpe.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::bpe_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

Vocabulary vocabulary(std::initializer_list<const char*> tokens) {
  Vocabulary out;
  for (const auto* token : tokens) out.insert(token, std::int64_t(out.size()));
  return out;
}

TEST(Bpe, MergesTheEarliestLearntPairFirst) {
  const Bpe bpe(vocabulary({"a", "b", "c", "bc", "ab", "abc"}),
                {{"b", "c"}, {"a", "b"}, {"a", "bc"}}, {}, "t");
  EXPECT_THAT(ids(bpe, "abc"), ElementsAre(5));  // bc, then a + bc
  EXPECT_THAT(ids(bpe, "ab"), ElementsAre(4));
  EXPECT_THAT(ids(bpe, "abab"), ElementsAre(4, 4));
  EXPECT_THAT(ids(bpe, ""), ElementsAre());
}

TEST(Bpe, MergesFromTheLeftAmongEquals) {
  const Bpe bpe(vocabulary({"a", "aa", "aaaa"}), {{"a", "a"}, {"aa", "aa"}}, {}, "t");
  EXPECT_THAT(ids(bpe, "aaa"), ElementsAre(1, 0));
  EXPECT_THAT(ids(bpe, "aaaaaaa"), ElementsAre(2, 1, 0));
}

TEST(Bpe, MarksTheEndAndTheInsideOfWords) {
  const Bpe clip(vocabulary({"a", "b", "b</w>", "ab</w>", "a</w>"}), {{"a", "b</w>"}},
                 {.end_suffix = "</w>"}, "t");
  EXPECT_THAT(ids(clip, "ab"), ElementsAre(3));
  EXPECT_THAT(ids(clip, "aba"), ElementsAre(0, 1, 4));
  const Bpe inside(vocabulary({"a", "##b", "ab"}), {{"a", "##b"}}, {.continuing_prefix = "##"},
                   "t");
  EXPECT_THAT(ids(inside, "ab"), ElementsAre(2));
}

TEST(Bpe, SaysUnkForWhatItDoesNotKnow) {
  const auto tokens = {"<unk>", "a"};
  EXPECT_THAT(ids(Bpe(vocabulary(tokens), {}, {.unk_token = "<unk>"}, "t"), "xya"),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(
      ids(Bpe(vocabulary(tokens), {}, {.unk_token = "<unk>", .fuse_unk = true}, "t"), "xyaz"),
      ElementsAre(0, 1, 0));
  EXPECT_THAT(ids(Bpe(vocabulary(tokens), {}, {}, "t"), "xya"), ElementsAre(1));
  const Bpe without(vocabulary({"a"}), {}, {.unk_token = "<unk>"}, "t");
  EXPECT_THAT(ids(without, "a"), ElementsAre(0));
  EXPECT_THAT(message_of([&] { ids(without, "b"); }), HasSubstr("'<unk>'"));
}

TEST(Bpe, SpellsUnknownCharactersInBytes) {
  const Bpe bpe(vocabulary({"<unk>", "a", "<0xC3>", "<0xA9>"}), {},
                {.unk_token = "<unk>", .byte_fallback = true}, "t");
  EXPECT_THAT(ids(bpe, "aé"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ids(bpe, "è"), ElementsAre(0));             // one of its bytes has no token
  EXPECT_THAT(ids(bpe, "èéa"), ElementsAre(2, 3, 0, 1));  // the reference's order
}

TEST(Bpe, TakesKnownWordsWholeWhenMergesAreIgnored) {
  const auto make = [](bool ignore) {
    return Bpe(vocabulary({"a", "b", "ab"}), {}, {.ignore_merges = ignore}, "t");
  };
  EXPECT_THAT(ids(make(true), "ab"), ElementsAre(2));
  EXPECT_THAT(ids(make(false), "ab"), ElementsAre(0, 1));
}

TEST(Bpe, TakesTheLastOfEqualMerges) {
  const Bpe bpe(vocabulary({"a", "b", "c", "ab", "bc"}), {{"a", "b"}, {"b", "c"}, {"a", "b"}}, {},
                "t");
  EXPECT_THAT(ids(bpe, "abc"), ElementsAre(0, 4));
}

TEST(Bpe, RefusesMergesOutsideItsVocabulary) {
  const auto complaint = [](const Bpe::Merges& merges, const BpeOptions& options) {
    return message_of([&] { Bpe(vocabulary({"a", "b", "ab"}), merges, options, "merges.txt"); });
  };
  EXPECT_EQ(complaint({{"a", "b"}}, {}), "");
  EXPECT_EQ(complaint({{"a", "x"}}, {}), "merges.txt merges 'x', which is not in its vocabulary");
  EXPECT_THAT(complaint({{"b", "a"}}, {}), HasSubstr("'ba'"));
  EXPECT_THAT(complaint({{"a", "b"}}, {.continuing_prefix = "##"}), HasSubstr("shorter"));
}

TEST(Bpe, MergesVeryLongWordsInLittleTime) {
  const Bpe bpe(vocabulary({"a", "aa", "aaaa", "b", "ab"}), {{"a", "a"}, {"aa", "aa"}, {"a", "b"}},
                {}, "t");
  EXPECT_EQ(ids(bpe, std::string(400'000, 'a')).size(), 100'000u);
}

}  // namespace braid::text::bpe_test
