#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::pre_tokenizer_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words(const std::string& json, const std::string& text,
                               bool at_start = true) {
  std::vector<TextPiece> pieces;
  read_pre_tokenizer(nlohmann::json::parse(json), "t.json")({.text = text, .at_start = at_start},
                                                            pieces);
  std::vector<std::string> out;
  for (const auto& piece : pieces) out.push_back(piece.text);
  return out;
}

TEST(PreTokenizer, IsNothingWhereTheFileHasNone) {
  EXPECT_FALSE(read_pre_tokenizer(nullptr, "t.json"));
}

TEST(PreTokenizer, WritesBytesAsGpt2Does) {
  EXPECT_THAT(words(R"({"type": "ByteLevel", "add_prefix_space": true})", "Hello my friend, it's"),
              ElementsAre("ĠHello", "Ġmy", "Ġfriend", ",", "Ġit", "'s"));
  EXPECT_THAT(words(R"({"type": "ByteLevel", "add_prefix_space": true})", " x"), ElementsAre("Ġx"));
  EXPECT_THAT(words(R"({"type": "ByteLevel", "add_prefix_space": false})", "a  b\n"),
              ElementsAre("a", "Ġ", "Ġb", "Ċ"));
  EXPECT_THAT(words(R"({"type": "ByteLevel", "use_regex": false})", "a é!"), ElementsAre("aĠÃ©!"));
}

TEST(PreTokenizer, MarksSpaces) {
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "▁"})", "Hey my  friend"),
              ElementsAre("▁Hey", "▁my", "▁", "▁friend"));
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "▁"})", "▁x"), ElementsAre("▁x"));
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "_", "split": false})", "a b"),
              ElementsAre("_a_b"));
}

TEST(PreTokenizer, PrependsTheMarkWhereTheSchemeSaysSo) {
  const std::string first =
      R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"})";
  EXPECT_THAT(words(first, "a b", true), ElementsAre("▁a", "▁b"));
  EXPECT_THAT(words(first, "a b", false), ElementsAre("a", "▁b"));
  EXPECT_THAT(
      words(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})", "a b"),
      ElementsAre("a", "▁b"));
  // Tokenizers wrote this before schemes existed.
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})", "a"),
              ElementsAre("a"));
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "▁", "str_rep": "▁",
                        "add_prefix_space": true})",
                    "a"),
              ElementsAre("▁a"));
}

TEST(PreTokenizer, CutsAtPatterns) {
  EXPECT_THAT(words(R"({"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated",
                        "invert": false})",
                    "a12"),
              ElementsAre("a", "1", "2"));
  EXPECT_THAT(words(R"({"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Removed",
                        "invert": true})",
                    "ab, c"),
              ElementsAre("ab", "c"));
  EXPECT_THAT(words(R"({"type": "Split", "pattern": {"String": "."}, "behavior":
                        "MergedWithPrevious"})",
                    "a.b"),
              ElementsAre("a.", "b"));
}

TEST(PreTokenizer, CutsAtKindsOfCharacters) {
  EXPECT_THAT(words(R"({"type": "WhitespaceSplit"})", " a\u3000b\n!"), ElementsAre("a", "b", "!"));
  EXPECT_THAT(words(R"({"type": "Whitespace"})", "How's it, Ⓐ²?"),
              ElementsAre("How", "'", "s", "it", ",", "Ⓐ", "²?"));
  EXPECT_THAT(words(R"({"type": "Digits", "individual_digits": false})", "a12½b"),
              ElementsAre("a", "12½", "b"));
  EXPECT_THAT(words(R"({"type": "Digits", "individual_digits": true})", "12"),
              ElementsAre("1", "2"));
  EXPECT_THAT(words(R"({"type": "Punctuation"})", "a!?b"), ElementsAre("a", "!", "?", "b"));
  EXPECT_THAT(words(R"({"type": "Punctuation", "behavior": "Contiguous"})", "a!?b"),
              ElementsAre("a", "!?", "b"));
}

TEST(PreTokenizer, FeedsEachStepOfASequenceThePiecesOfTheLast) {
  EXPECT_THAT(words(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                        {"type": "Metaspace", "replacement": "▁"}]})",
                    " a  b "),
              ElementsAre("▁a", "▁b"));
  EXPECT_THAT(words(R"({"type": "Sequence", "pretokenizers": []})", "a b"), ElementsAre("a b"));
}

TEST(PreTokenizer, NamesWhatItDoesNotKnow) {
  const auto complaint = [](const std::string& json) {
    return message_of([&] { read_pre_tokenizer(nlohmann::json::parse(json), "t.json"); });
  };
  EXPECT_EQ(complaint(R"({"type": "UnicodeScripts"})"),
            "t.json asks for the pre-tokenizer 'UnicodeScripts', which is not supported");
  EXPECT_THAT(complaint(R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Chopped"})"),
              HasSubstr("split behavior 'Chopped'"));
  EXPECT_THAT(complaint(R"({"type": "Split", "pattern": {"String": "x"}})"),
              HasSubstr("without a 'behavior'"));
  EXPECT_THAT(complaint(R"({"type": "Split", "pattern": {}, "behavior": "Removed"})"),
              HasSubstr("t.json has no 'Regex'"));
  EXPECT_THAT(complaint(R"({"type": "Metaspace", "replacement": "ab"})"),
              HasSubstr("'ab' is not one character"));
  EXPECT_THAT(complaint(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})"),
              HasSubstr("prepend scheme 'last'"));
  EXPECT_THAT(complaint(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always",
                            "add_prefix_space": false})"),
              HasSubstr("contradicts"));
  EXPECT_THAT(complaint(R"({"type": "Sequence", "pretokenizers": {}})"), HasSubstr("a list"));
}

}  // namespace braid::text::pre_tokenizer_test
