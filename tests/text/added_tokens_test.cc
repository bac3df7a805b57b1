#include "text/added_tokens.h"

#include <gmock/gmock.h>

#include "text/unicode/normalizer.h"
#include "text_testing.h"

namespace braid::text::added_tokens_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

// Pieces as text, tokens in brackets: {"a ", "[</s>]"}.
std::vector<std::string> extract(const AddedTokens& tokens, const std::string& text,
                                 const Normalizer& normalize = {}) {
  std::vector<std::string> out;
  for (const auto& piece : tokens.extract(text, normalize))
    out.push_back(piece.token ? "[" + piece.text + "]" : piece.text);
  return out;
}

AddedTokens prepared(const std::vector<AddedToken>& list, const Normalizer& normalize = {},
                     bool split_special = false) {
  AddedTokens tokens;
  tokens.add(list, {}, 0);
  tokens.prepare(normalize, split_special, "t");
  return tokens;
}

Normalizer lower_case() { return read_normalizer({{"type", "Lowercase"}}, "t"); }

TEST(AddedTokens, AreCutOutOfTheText) {
  const auto tokens = prepared({{.content = "</s>"}, {.content = "<s>"}});
  EXPECT_THAT(extract(tokens, "a </s>b<s><s>"), ElementsAre("a ", "[</s>]", "b", "[<s>]", "[<s>]"));
  EXPECT_THAT(extract(tokens, "</s"), ElementsAre("</s"));
  EXPECT_THAT(extract(tokens, ""), ElementsAre());
}

TEST(AddedTokens, MatchTheLongestThatBeginsFirst) {
  const auto tokens = prepared({{.content = "ab"}, {.content = "abc"}, {.content = "bcdef"}});
  EXPECT_THAT(extract(tokens, "abcdef"), ElementsAre("[abc]", "def"));
  EXPECT_THAT(extract(tokens, "xbcdef"), ElementsAre("x", "[bcdef]"));
}

TEST(AddedTokens, SwallowSpaceWhereTheyStrip) {
  EXPECT_THAT(extract(prepared({{.content = "<l>", .lstrip = true}}), "a \n<l> b"),
              ElementsAre("a", "[ \n<l>]", " b"));
  EXPECT_THAT(extract(prepared({{.content = "<r>", .rstrip = true}}), "a <r>\u3000 b"),
              ElementsAre("a ", "[<r>\u3000 ]", "b"));
  const auto both = prepared({{.content = "<b>", .lstrip = true, .rstrip = true}});
  EXPECT_THAT(extract(both, "<b> <b>"), ElementsAre("[<b> ]", "[<b>]"));
}

TEST(AddedTokens, StandAloneWhereTheyAreSingleWords) {
  const auto tokens = prepared({{.content = "cat", .single_word = true}});
  EXPECT_THAT(extract(tokens, "cat, concat cats _cat cat"),
              ElementsAre("[cat]", ", concat cats _cat ", "[cat]"));
  EXPECT_THAT(extract(tokens, "écat 你cat -cat²"), ElementsAre("écat 你cat -", "[cat]", "²"));
}

TEST(AddedTokens, AreLookedForInNormalizedTextWhenTheyAreNormalized) {
  const auto normalize = lower_case();
  const auto tokens =
      prepared({{.content = "RAW"}, {.content = "Norm", .normalized = true}}, normalize);
  EXPECT_THAT(extract(tokens, "A RAW raw NORM b", normalize),
              ElementsAre("a ", "[RAW]", " raw ", "[norm]", " b"));
}

TEST(AddedTokens, OfSeveralVectorsBringTheirFollowers) {
  const auto tokens = prepared({{.content = "<cat>"},
                                {.content = "<cat>_1"},
                                {.content = "<cat>_2"},
                                {.content = "<cat>_4"},
                                {.content = "<dog>"}});
  EXPECT_EQ(tokens.with_all_vectors("a <cat>, <dog><cat>", {}),
            "a <cat> <cat>_1 <cat>_2, <dog><cat> <cat>_1 <cat>_2");
  EXPECT_EQ(tokens.with_all_vectors("a cat", {}), "a cat");
  EXPECT_EQ(tokens.with_all_vectors("<cat>_1 <cat>", {}),
            "<cat> <cat>_1 <cat>_2_1 <cat> <cat>_1 <cat>_2")
      << "as diffusers replaces text, not tokens";
}

TEST(AddedTokens, StayTextWhenSpecialTokensAreSplit) {
  const std::vector<AddedToken> list = {{.content = "<s>", .special = true}, {.content = "x"}};
  EXPECT_THAT(extract(prepared(list, {}, true), "<s>x"), ElementsAre("<s>", "[x]"));
  EXPECT_THAT(extract(prepared(list, {}, false), "<s>x"), ElementsAre("[<s>]", "[x]"));
}

TEST(AddedTokens, KeepTheModelsIdsAndFollowBehindIt) {
  Vocabulary model;
  model.insert("a", 0);
  model.insert("</s>", 1);
  AddedTokens tokens;
  tokens.add({{.content = "</s>"}, {.content = "new"}, {.content = ""}, {.content = "newer"}},
             model, model.size());
  tokens.add({{.content = "newest"}, {.content = "new", .special = true}}, model, model.size());
  EXPECT_EQ(tokens.find("</s>"), 1);
  EXPECT_EQ(tokens.find("new"), 2);
  EXPECT_EQ(tokens.find("newer"), 3);
  EXPECT_EQ(tokens.find("newest"), 4);
  EXPECT_EQ(tokens.find(""), std::nullopt);
  EXPECT_EQ(tokens.end_id(), 5);
}

TEST(AddedTokens, AreNeverFoundWhereNormalizationLeavesNothingOfThem) {
  const auto strip = read_normalizer({{"type", "Strip"}}, "t");
  const auto tokens = prepared({{.content = "\n", .normalized = true}}, strip);
  EXPECT_THAT(extract(tokens, "a\nb", strip), ElementsAre("a\nb"));
}

TEST(AddedTokens, RefuseToBecomeEqual) {
  const auto complaint = [](const std::vector<AddedToken>& list) {
    return message_of([&] { prepared(list, lower_case()); });
  };
  EXPECT_THAT(
      complaint({{.content = "Ab", .normalized = true}, {.content = "aB", .normalized = true}}),
      HasSubstr("t has the added token 'aB' twice"));
  EXPECT_EQ(complaint({{.content = "Ab", .normalized = true}, {.content = "aB"}}), "");
  EXPECT_THAT(complaint({{.content = std::string(2000, 'a')}}), HasSubstr("2000 bytes"));
}

}  // namespace braid::text::added_tokens_test
