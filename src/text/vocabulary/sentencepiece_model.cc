#include "text/vocabulary/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/byte_order.h"
#include "base/error.h"
#include "base/utf8.h"

namespace braid::text {
namespace {

// Field numbers of sentencepiece_model.proto.
constexpr std::uint64_t kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3;  // of ModelProto
constexpr std::uint64_t kText = 1, kScore = 2, kType = 3;                    // of a piece
constexpr std::uint64_t kModelType = 3, kUnigramModel = 1;                   // of TrainerSpec
constexpr std::uint64_t kCharsmap = 2;                                       // of NormalizerSpec
constexpr std::uint64_t kNormal = 1, kControl = 3, kUserDefined = 4;         // types of a piece

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of varints and fixed-width numbers
  std::string_view bytes;   // of strings and messages
};

// Iterates over the fields of a message.
class Message {
 public:
  Message(std::string_view bytes, const std::string& source) : rest_(bytes), source_(source) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const auto tag = varint();
    field = {tag >> 3, 0, {}};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        throw InputError(
            text_of(source_, " is not a SentencePiece model: it has a field of type ", tag & 7));
    }
    return true;
  }

 private:
  std::string_view take(std::uint64_t size) {
    require(size <= rest_.size(), source_, " is not a SentencePiece model: it ends within a field");
    const auto out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  std::uint64_t fixed(std::size_t size) { return little_endian(take(size).data(), size); }

  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      out |= std::uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
    throw InputError(text_of(source_, " is not a SentencePiece model: it has an endless number"));
  }

  std::string_view rest_;
  const std::string& source_;
};

void read_piece(std::string_view bytes, const std::string& source, SentencePieceModel& model) {
  Message message(bytes, source);
  std::string_view text;
  double score = 0;
  std::uint64_t type = kNormal;
  for (Field field; message.next(field);) {
    if (field.number == kText) text = field.bytes;
    if (field.number == kScore) score = std::bit_cast<float>(std::uint32_t(field.value));
    if (field.number == kType) type = field.value;
  }
  require(is_valid_utf8(text) && std::isfinite(score), source, " has a token, number ",
          model.tokens.size(), ", that is not UTF-8 or has no finite score");
  model.tokens.push_back({std::string(text), score});
  if (type == kControl || type == kUserDefined)
    model.added.push_back({.content = std::string(text), .special = type == kControl});
}

}  // namespace

SentencePieceModel read_sentencepiece_model(std::string_view bytes, const std::string& source) {
  SentencePieceModel model;
  std::uint64_t model_type = kUnigramModel;
  Message message(bytes, source);
  for (Field field; message.next(field);) {
    if (field.number == kPieces) read_piece(field.bytes, source, model);
    if (field.number != kTrainerSpec && field.number != kNormalizerSpec) continue;
    Message spec(field.bytes, source);
    for (Field inner; spec.next(inner);) {
      if (field.number == kTrainerSpec && inner.number == kModelType) model_type = inner.value;
      if (field.number == kNormalizerSpec && inner.number == kCharsmap)
        model.charsmap = inner.bytes;
    }
  }
  require(!model.tokens.empty(), source, " is not a SentencePiece model: it has no tokens");
  require(model_type == kUnigramModel, source, " holds a SentencePiece model of type ", model_type,
          ", a unigram model (1) was expected");
  return model;
}

}  // namespace braid::text
