#include "text/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "text/pipeline.h"

namespace braid {
namespace {

constexpr std::int64_t kLongest = 1 << 20;  // far beyond any text encoder

void require_utf8(std::string_view text) {
  require(is_valid_utf8(text), "the text to tokenize is not valid UTF-8");
}

std::vector<std::int64_t> tokens_of(const text::TextPipeline& pipeline, std::string_view text) {
  std::vector<std::int64_t> ids;
  for (const auto& piece : pipeline.added.extract(text, pipeline.normalize)) {
    if (piece.token) {
      ids.push_back(*piece.token);
      continue;
    }
    std::vector<text::TextPiece> words;
    if (pipeline.pre_tokenize) {
      pipeline.pre_tokenize(piece, words);
    } else {
      words.push_back(piece);
    }
    for (const auto& word : words) encode(pipeline.model, word.text, ids);
  }
  return ids;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const text::TextPipeline> pipeline)
    : pipeline_(std::move(pipeline)) {}

Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode(std::string_view text, std::int64_t max_length) const {
  const auto& frame = pipeline_->frame;
  require(max_length >= std::max<std::int64_t>(frame.size(), 1) && max_length <= kLongest,
          "the number of tokens should lie between ", std::max<std::int64_t>(frame.size(), 1),
          " and ", kLongest, ", it is ", max_length);
  require_utf8(text);
  auto tokens = tokens_of(*pipeline_, text);
  const auto room = std::size_t(max_length - frame.size());
  Encoding out;
  out.truncated = tokens.size() > room;
  if (out.truncated && pipeline_->truncate == text::Side::left)
    tokens.erase(tokens.begin(), tokens.end() - std::ptrdiff_t(room));
  if (tokens.size() > room) tokens.resize(room);

  out.ids = frame.before;
  out.ids.insert(out.ids.end(), tokens.begin(), tokens.end());
  out.ids.insert(out.ids.end(), frame.after.begin(), frame.after.end());
  out.length = std::int64_t(out.ids.size());
  const auto padding = max_length - out.length;
  if (pipeline_->pad == text::Side::left) out.begin = padding;
  out.ids.insert(out.begin > 0 ? out.ids.begin() : out.ids.end(), std::size_t(padding),
                 pipeline_->pad_id);
  return out;
}

std::string Tokenizer::with_all_vectors(std::string_view text) const {
  require_utf8(text);
  return pipeline_->added.with_all_vectors(text, pipeline_->normalize);
}

std::int64_t Tokenizer::vocab_size() const {
  return std::max(vocabulary_of(pipeline_->model).end_id(), pipeline_->added.end_id());
}

std::int64_t Tokenizer::model_max_length() const { return pipeline_->model_max_length; }

std::int64_t Tokenizer::pad_id() const { return pipeline_->pad_id; }

}  // namespace braid
