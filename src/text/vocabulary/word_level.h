// Words as whole tokens: every piece that is not in the vocabulary is unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary/vocabulary.h"

namespace braid::text {

class WordLevel {
 public:
  WordLevel(Vocabulary vocabulary, std::optional<std::string> unk_token)
      : vocabulary_(std::move(vocabulary)), unk_token_(std::move(unk_token)) {}

  // Appends the word's id. Throws InputError if it needs the unk token and there is none.
  void encode(std::string_view word, std::vector<std::int64_t>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t size() const { return vocabulary_.size(); }

 private:
  Vocabulary vocabulary_;
  std::optional<std::string> unk_token_;
};

}  // namespace braid::text
