// Text to token ids, equal to transformers 5: CLIP, T5, the Qwen family, and anything else that
// tokenizer.json can express with byte-pair encoding or a unigram model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

struct Encoding {
  std::vector<std::int64_t> ids;  // exactly max_length
  std::int64_t begin = 0;         // of the text: after the padding if that is on the left
  std::int64_t length = 0;        // without padding, with the special tokens
  bool truncated = false;         // the text had more tokens than fit
};

namespace text {
struct TextPipeline;
}

// Immutable: any number of threads may encode with the same tokenizer.
class Tokenizer {
 public:
  explicit Tokenizer(std::unique_ptr<const text::TextPipeline> pipeline);
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // The result of the reference's tokenizer(text, padding="max_length", truncation=True,
  // max_length=max_length): special tokens added, truncated, padded. Throws InputError if the text
  // is not UTF-8, or the special tokens alone exceed max_length.
  Encoding encode(std::string_view text, std::int64_t max_length) const;

  // The text with all vectors of the textual inversions that it names, as FLUX.1's pipelines read
  // it: see AddedTokens::with_all_vectors(). Throws InputError if it is not UTF-8.
  std::string with_all_vectors(std::string_view text) const;

  std::int64_t vocab_size() const;        // the largest id + 1
  std::int64_t model_max_length() const;  // from tokenizer_config.json; see load_tokenizer()
  std::int64_t pad_id() const;

 private:
  std::unique_ptr<const text::TextPipeline> pipeline_;
};

}  // namespace braid
