// How many tokens of a prompt a model's text encoders read, and which of its words they do not,
// without their weights.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/families/text_encoders.h"
#include "text/tokenizer.h"

namespace braid {

// How one text encoder reads prompts.
struct PromptReader {
  std::string encoder = {};    // "CLIP"; empty if the model has only one
  std::string tokenizer = {};  // its folder in the model's
  enum class Reads { kPrompt, kSecondPrompt } reads = Reads::kPrompt;
  // The limit is the request's max_sequence_length, or the tokenizer's own.
  enum class Limit { kRequest, kTokenizer } limit = Limit::kRequest;
  std::function<std::string(const std::string& prompt)> chat =
      {};                                                         // around the prompt; empty: none
  enum class Vectors { kFirst, kAll } vectors = Vectors::kFirst;  // of textual inversions it names
  std::int64_t unseen = 0;  // tokens at the beginning of the chat that the transformer does not see
  std::string unseen_text = {};  // the same as text, where it is counted by the tokenizer
  std::int64_t behind = 0;       // tokens that follow the chat, whatever of it is cut
  std::int64_t most = 0;         // a limit of the encoder's own; 0: none
  enum class Keeps { kBeginning, kEnd } keeps = Keeps::kBeginning;
};

struct PromptTokens {
  std::string encoder;
  std::int64_t tokens = 0, limit = 0;  // with the chat's and special tokens
  std::string cut = {};  // the words that are not read, where the beginning is kept; else empty
};

// Warns that only the first `tokens` of a prompt count: those that "CLIP reads", say.
void warn_of_cut(std::int64_t tokens, const Warn& warn,
                 const std::string& reader = "the text encoder reads");

// Any number of threads may count with the same counter.
class PromptCounter {
 public:
  // Throws InputError if a tokenizer cannot be read. `folder` is the model's.
  PromptCounter(std::vector<PromptReader> readers, const std::filesystem::path& folder);

  // An empty second prompt counts as none. Throws InputError for text that is not UTF-8.
  std::vector<PromptTokens> count(const std::string& prompt, const std::string& second,
                                  int max_sequence_length) const;

 private:
  std::vector<PromptReader> readers_;
  std::vector<std::unique_ptr<const Tokenizer>> tokenizers_;
};

}  // namespace braid
