// Characters and tokens at the edges of ranges, against definitions written out here or against the
// ids that the tokenizers library (0.23) gives for the same tokenizer.json.
#include <gmock/gmock.h>

#include <set>

#include "base/utf8.h"
#include "text/added_tokens.h"
#include "text/build_tokenizer.h"
#include "text/post_processor.h"
#include "text/tokenizer.h"
#include "text/unicode/normalizer.h"
#include "text/vocabulary/bpe.h"
#include "text/vocabulary/byte_level.h"
#include "text_testing.h"

namespace braid::text::edges_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

std::string in_utf8(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

// bytes_to_unicode() of GPT-2's encoder.py: '!' to '~', U+00A1 to U+00AC and U+00AE to U+00FF stand
// for themselves; the other bytes get 256, 257 and so on in their order.
TEST(ByteAlphabet, IsGpt2s) {
  std::set<int> kept;
  for (const auto& [first, last] : {std::pair('!' + 0, '~' + 0), {0xA1, 0xAC}, {0xAE, 0xFF}})
    for (int byte = first; byte <= last; ++byte) kept.insert(byte);
  int others = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto code = kept.contains(byte) ? byte : 256 + others++;
    EXPECT_EQ(in_byte_alphabet(std::string(1, char(byte))), in_utf8(char32_t(code))) << byte;
  }
  EXPECT_EQ(others, 68);
}

// The reference's `nmt`, for every character of the basic plane.
TEST(Nmt, DropsControlsAndMakesSpacesOfWhatLooksLikeOne) {
  const auto clean = read_normalizer({{"type", "Nmt"}}, "t");
  const std::set<char32_t> dropped = {0x1,  0x2,  0x3,  0x4,  0x5,  0x6,  0x7,  0x8,  0xB,  0xE,
                                      0xF,  0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                      0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x7F, 0x8F, 0x9F};
  const std::set<char32_t> spaces = {0x9,    0xA,    0xC,    0xD,    0x1680, 0x200B, 0x200C, 0x200D,
                                     0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  for (char32_t c = 1; c < 0x10000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    TextPiece piece{.text = "a" + in_utf8(c) + "b"};
    clean(piece);
    const auto want = dropped.contains(c)  ? "ab"
                      : spaces.contains(c) ? "a b"
                                           : "a" + in_utf8(c) + "b";
    ASSERT_EQ(piece.text, want) << std::uint32_t(c);
  }
}

// ------------------------------------------------------------------------------ byte fallback

Vocabulary with_bytes(std::initializer_list<const char*> tokens) {
  Vocabulary out;
  for (const auto* token : tokens) out.insert(token, std::int64_t(out.size()));
  for (int byte = 0; byte < 256; ++byte) {
    char token[8];
    std::snprintf(token, sizeof token, "<0x%02X>", unsigned(byte));
    out.insert(token, std::int64_t(out.size()));
  }
  return out;
}

// Four tokens, then byte b is id 4 + b.
TEST(ByteFallback, SpellsTheMarkOfAWordsEndToo) {
  const Bpe bpe(with_bytes({"a", "b</w>", "a</w>", "<unk>"}), {},
                {.end_suffix = "</w>", .unk_token = "<unk>", .byte_fallback = true}, "t");
  EXPECT_THAT(ids(bpe, "aé"), ElementsAre(0, 199, 173, 64, 51, 123, 66));
  EXPECT_THAT(ids(bpe, "éa"), ElementsAre(199, 173, 2));
  EXPECT_THAT(ids(bpe, "é"), ElementsAre(199, 173, 64, 51, 123, 66));
  EXPECT_THAT(ids(bpe, "a😀"), ElementsAre(0, 244, 163, 156, 132, 64, 51, 123, 66));
  EXPECT_THAT(ids(bpe, "你"), ElementsAre(232, 193, 164, 64, 51, 123, 66));
}

TEST(ByteFallback, SpellsTheMarkOfAWordsInsideToo) {
  const Bpe bpe(with_bytes({"a", "b</w>", "a</w>", "<unk>"}), {},
                {.continuing_prefix = "##", .unk_token = "<unk>", .byte_fallback = true}, "t");
  EXPECT_THAT(ids(bpe, "aé"), ElementsAre(0, 39, 39, 199, 173));
  EXPECT_THAT(ids(bpe, "éa"), ElementsAre(199, 173, 39, 39, 101));
  EXPECT_THAT(ids(bpe, "éé"), ElementsAre(199, 173, 39, 39, 199, 173));
}

// ------------------------------------------------------------- special tokens within a prompt

// A unigram model with U+2581 as its space, and the tokens <s> = 6 and <r> = 7, which takes the
// space behind it.
std::unique_ptr<const Tokenizer> with_scheme(const std::string& scheme) {
  const auto token = [](int id, const char* content, bool rstrip) {
    return Json{{"id", id},        {"content", content}, {"single_word", false},
                {"lstrip", false}, {"rstrip", rstrip},   {"normalized", false},
                {"special", true}};
  };
  Json scored = Json::array();
  for (const auto& entry :
       {std::pair("<unk>", 0), {"▁a", -1}, {"a", -2}, {"▁", -3}, {"▁b", -1}, {"b", -2}})
    scored.push_back(Json::array({entry.first, entry.second}));
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", {token(6, "<s>", false), token(7, "<r>", true)}},
      {"pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", true}}},
      {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", scored}}}};
  return build_tokenizer({.folder = "t",
                          .tokenizer_json = json.dump(),
                          .tokenizer_config = R"({"pad_token": "<s>"})"});
}

std::vector<std::int64_t> unpadded(const Tokenizer& tokenizer, std::string_view text) {
  auto encoding = tokenizer.encode(text, 16);
  encoding.ids.resize(std::size_t(encoding.length));
  return encoding.ids;
}

TEST(Metaspace, BeginsOnlyTheTextIfItsSchemeIsFirst) {
  const auto tokenizer = with_scheme("first");
  EXPECT_THAT(unpadded(*tokenizer, "a"), ElementsAre(1));
  EXPECT_THAT(unpadded(*tokenizer, "<s>a"), ElementsAre(6, 2));
  EXPECT_THAT(unpadded(*tokenizer, "a<s>b"), ElementsAre(1, 6, 5));
  EXPECT_THAT(unpadded(*tokenizer, "<s> a"), ElementsAre(6, 1));
  EXPECT_THAT(unpadded(*tokenizer, "<r> a b"), ElementsAre(7, 2, 4));
  EXPECT_THAT(unpadded(*tokenizer, "  a"), ElementsAre(3, 1));
  EXPECT_THAT(unpadded(*tokenizer, "你a"), ElementsAre(3, 0, 2));
}

TEST(Metaspace, BeginsEveryPieceOrNone) {
  const auto always = with_scheme("always"), never = with_scheme("never");
  EXPECT_THAT(unpadded(*always, "<s>a"), ElementsAre(6, 1));
  EXPECT_THAT(unpadded(*always, "a<s>b"), ElementsAre(1, 6, 4));
  EXPECT_THAT(unpadded(*always, "<r> a b"), ElementsAre(7, 1, 4));
  EXPECT_THAT(unpadded(*never, "a<s>b"), ElementsAre(2, 6, 5));
  EXPECT_THAT(unpadded(*never, "<s><s>a b"), ElementsAre(6, 6, 2, 4));
  EXPECT_THAT(unpadded(*never, "你a"), ElementsAre(0, 2));
}

// ------------------------------------------------------------------------------ added tokens

TEST(AddedWords, StandAloneBehindASingleByteToo) {
  AddedTokens tokens;
  tokens.add({{.content = "cat", .single_word = true}}, {}, 0);
  tokens.prepare({}, false, "t");
  const auto count = [&](const std::string& text) {
    const auto pieces = tokens.extract(text, {});
    return std::ranges::count_if(pieces, [](const auto& piece) { return piece.token.has_value(); });
  };
  EXPECT_EQ(count("xcat"), 0);
  EXPECT_EQ(count("xcat cat"), 1);
  EXPECT_EQ(count(".cat"), 1);
  EXPECT_EQ(count("catx"), 0);
  EXPECT_EQ(count("cat."), 1);
}

// A token that the model has keeps its id and says nothing of where the new ones begin.
TEST(AddedTokens, BeginBehindTheModelEvenIfTheFirstIsOneOfItsOwn) {
  Vocabulary model;
  for (const char* token : {"<s>", "a", "b", "c", "d"})
    model.insert(token, std::int64_t(model.size()));
  AddedTokens tokens;
  tokens.add({{.content = "<s>"}}, model, model.size());
  tokens.add({{.content = "<new>"}, {.content = "a"}, {.content = "<newer>"}}, model, model.size());
  EXPECT_EQ(tokens.find("<s>"), 0);
  EXPECT_EQ(tokens.find("<new>"), 5);
  EXPECT_EQ(tokens.find("a"), 1);
  EXPECT_EQ(tokens.find("<newer>"), 6);
}

TEST(PostProcessors, RefuseIdsThatNoTokenCanHave) {
  const auto complaint = [](std::uint64_t id) {
    const Json json = {{"type", "BertProcessing"},
                       {"cls", Json::array({"a", id})},
                       {"sep", Json::array({"b", 1u})}};
    return message_of([&] { (void)read_post_processor(json, "t.json"); });
  };
  EXPECT_THAT(complaint(1ull << 40), HasSubstr("'cls' should be a token and its id"));
  EXPECT_THAT(complaint(~0ull), HasSubstr("'cls' should be a token and its id"));
  EXPECT_EQ(complaint(7), "");
}

}  // namespace braid::text::edges_test
