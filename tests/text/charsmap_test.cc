// The double-array trie: small hand-made ones, and T5's own.
#include "text/unicode/charsmap.h"

#include <gmock/gmock.h>

#include "text/vocabulary/sentencepiece_model.h"
#include "text_testing.h"

namespace braid::text::charsmap_test {

using namespace testing_text;
using testing::HasSubstr;

Charsmap nmt_nfkc() {
  const auto model = read_sentencepiece_model(read_file(data("t5/spiece.model")), "spiece.model");
  return Charsmap(model.charsmap, "spiece.model");
}

std::string units(const std::vector<std::uint32_t>& values) {
  std::string out;
  for (const auto value : values)
    for (int shift = 0; shift < 32; shift += 8) out += char(value >> shift & 0xFF);
  return out;
}

// A trie of 256 units whose root has the child 'a' at 1 ^ 'a', with a leaf holding `value`.
std::string map_of_a(std::uint32_t value, const std::string& replacements) {
  std::vector<std::uint32_t> trie(256, 0x80000000);
  trie[0] = 1u << 10;                        // children at 0 ^ 1
  trie[1 ^ 'a'] = 3u << 10 | 1u << 8 | 'a';  // its leaf at itself ^ 3
  trie[1 ^ 'a' ^ 3] = value | 0x80000000;
  return units({std::uint32_t(trie.size() * 4)}) + units(trie) + replacements;
}

TEST(Charsmap, ReplacesWhatT5Replaces) {
  const auto map = nmt_nfkc();
  EXPECT_EQ(map.apply("plain ASCII, 100%"), "plain ASCII, 100%");
  EXPECT_EQ(map.apply("ＡＢＣ　①½ﬁ㌔"), "ABC 11⁄2fiキロ");
  EXPECT_EQ(map.apply("a\tb\u00a0c\u200bd\u0007e"), "a b c de");
  EXPECT_EQ(map.apply("＜/s＞"), "</s>");
  EXPECT_EQ(map.apply(""), "");
}

// The reference replaces a short cluster as a whole, by the entry of its shortest key.
TEST(Charsmap, TreatsClustersAsTheReferenceDoes) {
  const auto map = nmt_nfkc();
  EXPECT_EQ(map.apply("e\u0301"), "é");
  EXPECT_EQ(map.apply("ﬁ\u0301"), "fi");                    // five bytes: the accent is lost
  EXPECT_EQ(map.apply("ﬁ\u0301\u0301"), "fi\u0301\u0301");  // seven: character by character
  EXPECT_EQ(map.apply("\r\n"), " ");
  EXPECT_EQ(map.apply("\n\r"), "  ");
}

TEST(Charsmap, ReadsATrieMadeByHand) {
  const Charsmap map(map_of_a(2, std::string("x\0yz\0", 5)), "t");
  EXPECT_EQ(map.apply("banana"), "byznyznyz");
  EXPECT_EQ(map.apply("a\u0301b"), "yzb");
  EXPECT_EQ(map.apply(std::string_view("\0a", 2)), std::string("\0yz", 3));
  EXPECT_EQ(Charsmap(map_of_a(0, std::string("\0", 1)), "t").apply("banana"), "bnn");
}

TEST(Charsmap, FindsNothingWhereATriePointsOutside) {
  EXPECT_EQ(Charsmap(map_of_a(9, "abc"), "t").apply("a"), "a");  // beyond the replacements
  EXPECT_EQ(Charsmap(map_of_a(1, "é"), "t").apply("a"), "a");    // within a character
  EXPECT_EQ(Charsmap(map_of_a(0, "no end"), "t").apply("a"), "no end");
  auto far = map_of_a(0, "x");
  far.replace(4, 4, units({0xFFFFFE00}));  // the root's children lie far away
  EXPECT_EQ(Charsmap(far, "t").apply("a"), "a");
  auto leaf = map_of_a(0, "x");
  leaf.replace(4 + 4 * (1 ^ 'a'), 4, units({0xFFFC0000u | 1u << 8 | 'a'}));
  EXPECT_EQ(Charsmap(leaf, "t").apply("a"), "a");
}

TEST(Charsmap, SaysWhatIsWrongWithItsBytes) {
  const auto complaint = [](const std::string& bytes) {
    return message_of([&] { Charsmap(bytes, "t.model"); });
  };
  EXPECT_THAT(complaint("abc"), HasSubstr("t.model has a character map of 3 bytes"));
  EXPECT_THAT(complaint(units({0xFFFFFFFC, 0})), HasSubstr("declares 1073741823 units"));
  EXPECT_THAT(complaint(units({0, 0})), HasSubstr("declares 0 units"));
  EXPECT_THAT(complaint(units({4, 0}) + "\xFF"), HasSubstr("not UTF-8"));
}

}  // namespace braid::text::charsmap_test
