// The unigram language model: the likeliest of all ways to split a text into known pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary/trie.h"
#include "text/vocabulary/vocabulary.h"

namespace braid::text {

class Unigram {
 public:
  struct ScoredToken {
    std::string text;
    double score;  // log probability
  };
  struct Options {
    std::optional<std::int64_t> unk_id = {};
    bool byte_fallback = false;
  };

  // A token's id is its index. Throws InputError naming `source` if there is no token or the unk id
  // is out of range.
  Unigram(std::vector<ScoredToken> tokens, Options options, const std::string& source);

  // Appends the ids of the best split (Viterbi). Throws InputError if it needs the unk token and
  // there is none.
  void encode(std::string_view text, std::vector<std::int64_t>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t size() const { return scores_.size(); }

 private:
  struct Step {
    double score = 0;
    std::size_t begin = 0;
    std::int64_t id = -1;  // -1: not reached
  };

  std::vector<Step> best_steps(std::string_view text) const;
  void append(std::string_view piece, std::vector<std::int64_t>& ids) const;
  std::int64_t unk() const;

  Vocabulary vocabulary_;
  Trie trie_;
  std::vector<double> scores_;  // by id
  double unk_score_ = 0;
  Options options_;
};

}  // namespace braid::text
