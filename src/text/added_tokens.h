// Tokens found in the text before the model sees it: "<|endoftext|>", "<extra_id_3>".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece.h"
#include "text/vocabulary/trie.h"
#include "text/vocabulary/vocabulary.h"

namespace braid::text {

struct AddedToken {
  std::string content;
  bool single_word = false;  // only if no word character adjoins it
  bool lstrip = false;       // also takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // searched for in the normalized text
  bool special = false;
};

class AddedTokens {
 public:
  // A token known to `model` keeps its id; the others get the following ids. A token given twice
  // has the properties given last.
  void add(const std::vector<AddedToken>& tokens, const Vocabulary& model, std::size_t model_size);

  // Call once, after the last add(). With `split_special`, special tokens are left in the text.
  // Throws InputError naming `source` if two tokens normalize to the same text.
  void prepare(const Normalizer& normalize, bool split_special, const std::string& source);

  // Splits `text` at the added tokens and normalizes what lies between.
  std::vector<TextPiece> extract(std::string_view text, const Normalizer& normalize) const;

  // The text in which every token that has followers is joined by them, wherever it stands: a
  // textual inversion of n vectors is stored as the tokens <x>, <x>_1 ... <x>_(n-1), and prompts
  // name <x>. From diffusers' TextualInversionLoaderMixin.maybe_convert_prompt().
  std::string with_all_vectors(std::string_view text, const Normalizer& normalize) const;

  std::optional<std::int64_t> find(std::string_view content) const { return ids_.find(content); }
  std::int64_t end_id() const { return ids_.end_id(); }

 private:
  void insert(Trie& trie, std::string_view text, std::int64_t id, const std::string& source);
  void cut(const TextPiece& piece, const Trie& trie, std::vector<TextPiece>& out) const;

  std::map<std::int64_t, AddedToken> tokens_;  // by id
  Vocabulary ids_;
  Trie raw_, normalized_;
  bool split_special_ = false;
};

}  // namespace braid::text
