#include "text/vocabulary/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <sentencepiece_processor.h>

#include <bit>

#include "text_testing.h"

namespace braid::text::sentencepiece_model_test {

using namespace testing_text;
using testing::HasSubstr;

std::string complaint(const std::string& bytes) {
  return message_of([&] { read_sentencepiece_model(bytes, "s.model"); });
}

// A field of type 2: its tag, its length, its bytes. Small ones only.
std::string field(int number, const std::string& bytes) {
  return std::string{char(number << 3 | 2), char(bytes.size())} + bytes;
}

std::string piece(const std::string& text, float score, char type) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  std::string number = "\x15";  // field 2, 32 bits
  for (int shift = 0; shift < 32; shift += 8) number += char(bits >> shift & 0xFF);
  return field(1, field(1, text) + number + "\x18" + type);
}

TEST(SentencePieceModel, HoldsWhatTheLibraryReadsInIt) {
  const auto path = data("t5/spiece.model");
  const auto model = read_sentencepiece_model(read_file(path), path.string());
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.Load(path.string()).ok());
  ASSERT_EQ(model.tokens.size(), std::size_t(library.GetPieceSize()));
  for (int id = 0; id < library.GetPieceSize(); ++id) {
    EXPECT_EQ(model.tokens[std::size_t(id)].text, library.IdToPiece(id));
    EXPECT_EQ(float(model.tokens[std::size_t(id)].score), library.GetScore(id));
  }
  ASSERT_EQ(model.added.size(), 2u);
  EXPECT_EQ(model.added[0].content, "<pad>");
  EXPECT_EQ(model.added[1].content, "</s>");
  EXPECT_GT(model.charsmap.size(), 200'000u);
}

TEST(SentencePieceModel, KnowsControlAndUserDefinedTokens) {
  const auto model = read_sentencepiece_model(
      piece("a", -1, 1) + piece("<c>", 0, 3) + piece("<u>", 0, 4) + field(9, "unknown fields"),
      "s");
  ASSERT_EQ(model.added.size(), 2u);
  EXPECT_TRUE(model.added[0].special);
  EXPECT_EQ(model.added[1].content, "<u>");
  EXPECT_FALSE(model.added[1].special);
  EXPECT_EQ(model.tokens[0].score, -1);
}

TEST(SentencePieceModel, RefusesWhatIsNone) {
  EXPECT_THAT(complaint(""), HasSubstr("s.model is not a SentencePiece model: it has no tokens"));
  EXPECT_THAT(complaint("{\"json\": 1}"), HasSubstr("s.model is not a SentencePiece model"));
  EXPECT_THAT(complaint("\x0a\x7f"), HasSubstr("ends within a field"));
  EXPECT_THAT(complaint("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), HasSubstr("ends within"));
  EXPECT_THAT(complaint(std::string(12, '\xff')), HasSubstr("endless number"));
  EXPECT_THAT(complaint("\x0b"), HasSubstr("field of type 3"));
  EXPECT_THAT(complaint(piece("\xff", 0, 1)), HasSubstr("number 0, that is not UTF-8"));
  EXPECT_THAT(complaint(piece("a", std::bit_cast<float>(0x7FC00000), 1)), HasSubstr("finite"));
  EXPECT_THAT(complaint(piece("a", 0, 1) + field(2, "\x18\x02")),
              HasSubstr("model of type 2, a unigram model"));
}

TEST(SentencePieceModel, SurvivesEveryTruncationAndFlippedByte) {
  const auto whole = piece("<unk>", 0, 2) + piece("ab", -1.5F, 1) + field(3, field(2, "chars"));
  for (std::size_t size = 0; size < whole.size(); ++size) complaint(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char flip : {'\x01', '\x80', '\x7f'}) {
      auto damaged = whole;
      damaged[at] = char(damaged[at] ^ flip);
      complaint(damaged);
    }
}

}  // namespace braid::text::sentencepiece_model_test
