// Text to token ids, equal to transformers 5: CLIP, T5, the Qwen family, and what else
// tokenizer.json can say with byte-pair encoding or a unigram model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace braid {

struct Encoding {
  std::vector<std::int64_t> ids;  // max_length of them
  std::int64_t begin = 0;         // of the text: behind the padding, where that is on the left
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

  // What the reference returns for tokenizer(text, padding="max_length", truncation=True,
  // max_length=max_length): special tokens added, truncated, padded. Throws InputError when the
  // text is not UTF-8, or the special tokens alone are longer than max_length.
  Encoding encode(std::string_view text, std::int64_t max_length) const;

  std::int64_t vocab_size() const;        // the largest id + 1
  std::int64_t model_max_length() const;  // of tokenizer_config.json; see load_tokenizer()
  std::int64_t pad_id() const;

 private:
  std::unique_ptr<const text::TextPipeline> pipeline_;
};

// Reads tokenizer.json, else vocab.json and merges.txt, else spiece.model: the first that is there,
// as transformers does; with them tokenizer_config.json, special_tokens_map.json,
// added_tokens.json. A class named in tokenizer_config.json that is CLIPTokenizer, T5Tokenizer or
// Qwen2Tokenizer brings its own normalizer and pre-tokenizer, and takes from tokenizer.json the
// vocabulary only; other classes take all of it. Without a configured length (or with the "very
// large" one) the length is 77 for CLIP and 512 for others. Throws InputError naming the folder or
// the file.
std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace braid
