// Every code point against the reference, and the rules that involve several.
#include "text/unicode/unicode.h"
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <unordered_set>

#include "text/unicode/normalizer.h"
#include "text/unicode/regex.h"
#include "text_testing.h"

namespace braid::unicode_test {

using namespace testing_text;
using text::Regex;
using text::TextPiece;
using unicode::Form;

std::string utf8(char32_t code) {
  std::string out;
  append_utf8(out, code);
  return out;
}

using Function = std::function<std::string(char32_t)>;

Function normalizer(const char* type) {
  return [normalize = text::read_normalizer({{"type", type}}, "test")](char32_t c) {
    TextPiece piece{.text = utf8(c)};
    normalize(piece);
    return piece.text;
  };
}

Function members(std::function<bool(char32_t)> is_member) {
  return [is_member](char32_t c) { return is_member(c) ? utf8(c) : ""; };
}

Function matched_by(const std::string& pattern) {
  std::string everything;
  for (char32_t c = 0; c < 0x110000; ++c)
    if (c < 0xD800 || c > 0xDFFF) everything += utf8(c);
  std::unordered_set<char32_t> matched;
  for (const auto& match : Regex(pattern, "test").find_all(everything))
    matched.insert(decode_utf8(everything, match.begin).code);
  return members([matched](char32_t c) { return matched.contains(c); });
}

std::map<std::string, Function> functions() {
  std::map<std::string, Function> out = {
      {"WhitespaceSplit", members(unicode::is_whitespace)},
      {"Digits", members(unicode::is_numeric)},
      {"Punctuation", members(unicode::is_punctuation)},
      {"\\s", matched_by("\\s")},
      {"\\w", matched_by("\\w")},
      {"\\d", matched_by("\\d")},
  };
  for (const char* type : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"})
    out[type] = normalizer(type);
  for (const std::string name : {"L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "P", "S"})
    out[name] = matched_by("\\p{" + name + "}");
  return out;
}

std::string digest_of_plane(const Function& function, char32_t first) {
  Digest out;
  for (char32_t c = first; c < first + 0x10000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const auto result = function(c);
    for (std::size_t at = 0; at < result.size();) {
      const auto next = decode_utf8(result, at);
      out.add(next.code);
      at += next.size;
    }
    out.add(0x10FFFF);
  }
  return out.hex();
}

TEST(Unicode, TreatsEveryCodePointLikeTheReference) {
  const auto known = functions();
  std::size_t compared = 0;
  for (const auto& line : lines_of(data("unicode.expected"))) {
    const auto space = line.find(' '), last = line.rfind(' ');
    const auto& function = known.at(line.substr(0, space));
    const auto first = char32_t(std::stoul(line.substr(space + 1), nullptr, 16));
    EXPECT_EQ(digest_of_plane(function, first), line.substr(last + 1)) << line;
    ++compared;
  }
  EXPECT_EQ(compared, known.size() * 17);
}

TEST(Unicode, StepsBackOverBadBytesOneByOne) {
  EXPECT_EQ(unicode::decode_before("a\x82", 2).size, 1u);
  EXPECT_EQ(unicode::decode_before("a€", 4).code, U'€');
  EXPECT_EQ(unicode::decode_before("€", 3).size, 3u);
}

TEST(Unicode, ComposesAcrossCharacters) {
  EXPECT_EQ(unicode::normalized("e\u0301", Form::nfc), "é");
  EXPECT_EQ(unicode::normalized("é", Form::nfd), "e\u0301");
  EXPECT_EQ(unicode::normalized("가", Form::nfd), "\u1100\u1161");
  EXPECT_EQ(unicode::normalized("\u1100\u1161\u11A8", Form::nfc), "각");
  EXPECT_EQ(unicode::normalized("ﬁ½", Form::nfkc), "fi1\u20442");
  EXPECT_EQ(unicode::normalized("\u1E9B\u0323", Form::nfkc), "\u1E69");
  // Marks are ordered by class first: cedilla 202, then acute 230.
  EXPECT_EQ(unicode::normalized("c\u0301\u0327", Form::nfc), "ḉ");
}

// The reference's tables are those of Unicode 9: later marks keep others from joining their letter.
TEST(Unicode, LeavesLaterMarksWhereTheyAre) {
  EXPECT_EQ(unicode::normalized("a\u1ABF\u0301", Form::nfc), "a\u1ABF\u0301");
  EXPECT_EQ(unicode::normalized("a\u1AB0\u0327", Form::nfd), "a\u0327\u1AB0");
  EXPECT_EQ(unicode::normalized("\U00011935\U00011930", Form::nfc), "\U00011935\U00011930");
  EXPECT_EQ(unicode::normalized("\U000105D2\u0307", Form::nfc), "\U000105D2\u0307");
}

TEST(Unicode, OrdersManyMarksInLittleTime) {
  std::string marks = "a";
  for (int i = 0; i < 200'000; ++i) marks += i % 2 ? "\u0327" : "\u0301";
  EXPECT_EQ(unicode::normalized(marks, Form::nfc).size(), marks.size() - 1);
}

TEST(Unicode, LowersCharacterByCharacter) {
  EXPECT_EQ(unicode::lower_case("ΟΔΥΣΣΕΥΣ"), "οδυσσευσ");  // no final sigma
  EXPECT_EQ(unicode::lower_case("İI"), "i\u0307i");
  EXPECT_EQ(unicode::lower_case("STRASSE ẞ Ǆ"), "strasse ß ǆ");
}

TEST(Unicode, MeasuresGraphemeClusters) {
  EXPECT_EQ(unicode::grapheme_size("\r\nx", 0), 2u);
  EXPECT_EQ(unicode::grapheme_size("e\u0301\u0327x", 0), 5u);
  EXPECT_EQ(unicode::grapheme_size("xe\u0301", 0), 1u);
  EXPECT_EQ(unicode::grapheme_size("\u1100\u1161\u11A8", 0), 9u);
  EXPECT_EQ(unicode::grapheme_size("👩‍👧x", 0), 11u);
  EXPECT_EQ(unicode::grapheme_size("🇩🇪🇫🇷", 0), 8u);
  EXPECT_EQ(unicode::grapheme_size("a\u1ACFx", 0), 4u);      // an extender of Unicode 16
  EXPECT_EQ(unicode::grapheme_size("\U000113D1ax", 0), 5u);  // prepended, Unicode 16
  EXPECT_EQ(unicode::grapheme_size("\U00011A3Aax", 0), 4u);  // no longer prepended
}

}  // namespace braid::unicode_test
