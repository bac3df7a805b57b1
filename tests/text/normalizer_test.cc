#include "text/unicode/normalizer.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::normalizer_test {

using namespace testing_text;
using testing::HasSubstr;

TextPiece applied(const std::string& json, const std::string& text) {
  TextPiece piece{.text = text, .at_start = true};
  const auto normalize = read_normalizer(nlohmann::json::parse(json), "t.json");
  if (normalize) normalize(piece);
  return piece;
}

std::string normalized(const std::string& json, const std::string& text) {
  return applied(json, text).text;
}

TEST(Normalizer, IsNothingWhereTheFileHasNone) { EXPECT_EQ(normalized("null", "É x"), "É x"); }

TEST(Normalizer, ChangesForms) {
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "e\u0301"), "é");
  EXPECT_EQ(normalized(R"({"type": "NFKD"})", "ﬁ"), "fi");
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "ÀB"), "àb");
  EXPECT_EQ(normalized(R"({"type": "ByteLevel"})", "a é"), "aĠÃ©");
}

TEST(Normalizer, RunsASequenceInOrder) {
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": [
                {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]})",
                       "Élan Ñ"),
            "elan n");
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": []})", "x"), "x");
}

TEST(Normalizer, StripsTheSidesItIsToldTo) {
  EXPECT_EQ(
      normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " \u3000a b\t\n"),
      "a b");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " a "),
            "a ");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a "),
            " a");
  EXPECT_EQ(normalized(R"({"type": "Strip"})", " \n "), "");
}

TEST(Normalizer, ReplacesTextsAndExpressions) {
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"String": "``"}, "content": "\""})", "``a``"),
      "\"a\"");
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "})", "a \n\tb"),
      "a b");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": "^"}, "content": "_"})", "a"),
            "_a");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"String": "."}, "content": ""})", "a.b"),
            "ab");
}

TEST(Normalizer, PrependsToWhatIsNotEmpty) {
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
}

TEST(Normalizer, CleansLikeNmt) {
  EXPECT_EQ(normalized(R"({"type": "Nmt"})", "a\u0001\tb\u200bc\u2581d\u007f"), "a b c d");
}

// Metaspace's "first" depends on it.
TEST(Normalizer, KnowsWhetherTheTextsFirstCharacterIsStillThere) {
  EXPECT_TRUE(applied(R"({"type": "Lowercase"})", "A").at_start);
  EXPECT_FALSE(applied(R"({"type": "Strip"})", " a").at_start);
  EXPECT_TRUE(applied(R"({"type": "Strip"})", "a ").at_start);
  EXPECT_FALSE(applied(R"({"type": "StripAccents"})", "\u0301a").at_start);
  EXPECT_TRUE(applied(R"({"type": "StripAccents"})", "a\u0301").at_start);
  const std::string spaces = R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"})";
  EXPECT_TRUE(applied(spaces, " a").at_start);
  EXPECT_FALSE(applied(spaces, "  a").at_start);
  EXPECT_TRUE(applied(spaces, "a  b").at_start);
}

TEST(Normalizer, NamesWhatItDoesNotKnow) {
  const auto complaint = [](const std::string& json) {
    return message_of([&] { read_normalizer(nlohmann::json::parse(json), "t.json"); });
  };
  EXPECT_EQ(complaint(R"({"type": "BertNormalizer"})"),
            "t.json asks for the normalizer 'BertNormalizer', which is not supported");
  EXPECT_THAT(complaint(R"({"type": 3})"), HasSubstr("t.json: 'type' should be a string"));
  EXPECT_THAT(complaint(R"([])"), HasSubstr("t.json should hold a JSON object"));
  EXPECT_THAT(complaint(R"({"type": "Sequence"})"), HasSubstr("t.json has no 'normalizers'"));
  EXPECT_THAT(complaint(R"({"type": "Sequence", "normalizers": 1})"), HasSubstr("a list"));
  EXPECT_THAT(complaint(R"({"type": "Replace", "pattern": {"String": ""}, "content": "x"})"),
              HasSubstr("t.json has an empty pattern"));
  EXPECT_THAT(complaint(R"({"type": "Replace", "pattern": {"Regex": "("}, "content": "x"})"),
              HasSubstr("t.json has the regular expression '('"));
  EXPECT_THAT(complaint(R"({"type": "Precompiled", "precompiled_charsmap": "AAA"})"),
              HasSubstr("t.json holds base64 of 3 characters"));
}

}  // namespace braid::text::normalizer_test
