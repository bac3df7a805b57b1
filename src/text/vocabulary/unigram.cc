#include "text/vocabulary/unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "text/vocabulary/byte_fallback.h"

namespace braid::text {
namespace {

constexpr double kUnkPenalty = 10;  // below the least likely token; SentencePiece's constant

}  // namespace

Unigram::Unigram(std::vector<ScoredToken> tokens, Options options, const std::string& source)
    : options_(options) {
  require(!tokens.empty(), source, " has an empty vocabulary");
  require(!options_.unk_id || *options_.unk_id < std::int64_t(tokens.size()), source,
          " has the unk id ", options_.unk_id.value_or(0), ", its vocabulary ends before at ",
          tokens.size());
  double least = std::numeric_limits<double>::infinity();
  scores_.reserve(tokens.size());
  for (auto& [text, score] : tokens) {
    const auto id = std::uint32_t(scores_.size());
    require(text.size() <= Trie::kLongestKey, source, " has a token of ", text.size(),
            " bytes, at most ", Trie::kLongestKey, " were expected");
    least = std::min(least, score);
    scores_.push_back(score);
    trie_.insert(text, id);  // of equal tokens the last one wins
    vocabulary_.insert_or_assign(text, id);
  }
  unk_score_ = least - kUnkPenalty;
}

std::int64_t Unigram::unk() const {
  require(options_.unk_id.has_value(),
          "the text has characters that the tokenizer does not know, and it has no unk token");
  return *options_.unk_id;
}

// steps[i]: the last token of the best split of text[0, i).
std::vector<Unigram::Step> Unigram::best_steps(std::string_view text) const {
  std::vector<Step> steps(text.size() + 1);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto score = steps[begin].score;
    const auto size = decode_utf8(text, begin).size;
    bool knows_character = false;
    const auto reach = [&](std::size_t length, double token_score, std::int64_t id) {
      auto& step = steps[begin + length];
      if (step.id < 0 || score + token_score > step.score) step = {score + token_score, begin, id};
    };
    trie_.for_each_prefix(text.substr(begin), [&](std::size_t length, std::uint32_t id) {
      reach(length, scores_[id], id);
      knows_character = knows_character || length == size;
    });
    if (!knows_character) reach(size, unk_score_, unk());
    begin += size;
  }
  return steps;
}

void Unigram::append(std::string_view piece, std::vector<std::int64_t>& ids) const {
  if (const auto id = vocabulary_.find(piece)) return ids.push_back(*id);
  if (options_.byte_fallback) {
    if (const auto bytes = byte_tokens(piece, vocabulary_)) {
      ids.insert(ids.end(), bytes->begin(), bytes->end());
      return;
    }
  }
  ids.push_back(unk());
}

void Unigram::encode(std::string_view text, std::vector<std::int64_t>& ids) const {
  const auto steps = best_steps(text);
  std::vector<std::string_view> pieces;  // last first
  bool after_unk = false;
  for (auto end = text.size(); end > 0;) {
    const auto& step = steps[end];
    auto piece = text.substr(step.begin, end - step.begin);
    const bool is_unk = options_.unk_id == step.id;
    if (is_unk && after_unk) {  // neighbours in the text: one longer view
      piece = text.substr(step.begin, piece.size() + pieces.back().size());
      pieces.pop_back();
    }
    pieces.push_back(piece);
    after_unk = is_unk;
    end = step.begin;
  }
  for (auto it = pieces.rbegin(); it != pieces.rend(); ++it) append(*it, ids);
}

}  // namespace braid::text
