// Byte-pair encoding: a word starts as its characters; known pairs merge, in the order they were
// learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/vocabulary/vocabulary.h"

namespace braid::text {

struct BpeOptions {
  std::string continuing_prefix = {};         // before every character but a word's first
  std::string end_suffix = {};                // after a word's last character: CLIP's "</w>"
  std::optional<std::string> unk_token = {};  // without it, unknown characters vanish
  bool fuse_unk = false;                      // adjacent unknown characters become one token
  bool byte_fallback = false;                 // unknown characters become "<0x..>" tokens
  bool ignore_merges = false;                 // words in the vocabulary are taken whole
};

class Bpe {
 public:
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

  // `merges` best first. Throws InputError naming `source` and the merge whose parts or result are
  // not in the vocabulary.
  Bpe(Vocabulary vocabulary, const Merges& merges, BpeOptions options, const std::string& source);

  // Appends the word's ids. O(n log n). Throws InputError if it needs an unk token and there is
  // none.
  void encode(std::string_view word, std::vector<std::int64_t>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::size_t size() const { return vocabulary_.size(); }

 private:
  struct Merge {
    std::uint32_t rank, result;
  };
  class Word;

  const Merge* find(std::int64_t left, std::int64_t right) const;
  std::vector<std::int64_t> characters(std::string_view word) const;
  bool append_bytes(std::string_view text, std::vector<std::int64_t>& ids) const;
  std::int64_t unk() const;

  Vocabulary vocabulary_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // by both ids
  BpeOptions options_;
};

}  // namespace braid::text
