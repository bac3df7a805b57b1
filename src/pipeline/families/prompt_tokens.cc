#include "pipeline/families/prompt_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

constexpr std::int64_t kLongest = 1 << 17;  // tokens that are counted
constexpr std::size_t kLongestWord = 24;    // bytes; longer ones are taken apart

// The prompt as its encoder reads it, and beginnings of it.
class ReadPrompt {
 public:
  ReadPrompt(const PromptReader& reader, const Tokenizer& tokenizer)
      : reader_(reader), tokenizer_(tokenizer) {
    unseen_ = reader.unseen_text.empty() ? reader.unseen : length_of(reader.unseen_text);
    if (!reader.chat) return;
    const std::string mark = "\x01";
    const auto chat = reader.chat(mark);
    behind_ = length_of(chat.substr(chat.find(mark) + 1)) - length_of("");
  }

  std::int64_t tokens(const std::string& prompt) const {
    const auto length = length_of(reader_.chat ? reader_.chat(prompt)
                                  : reader_.vectors == PromptReader::Vectors::kAll
                                      ? tokenizer_.with_all_vectors(prompt)
                                      : prompt);
    return length - unseen_ + reader_.behind;
  }
  // Tokens of the chat that stand behind the prompt: they are cut before it is.
  std::int64_t behind() const { return behind_; }

 private:
  std::int64_t length_of(const std::string& text) const {
    return tokenizer_.encode(text, kLongest).length;
  }

  const PromptReader& reader_;
  const Tokenizer& tokenizer_;
  std::int64_t behind_ = 0, unseen_ = 0;
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool is_inside_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Where a beginning of the text may end: before spaces, beside characters that are not ASCII, and
// within very long words.
std::vector<std::size_t> ends_of_words(const std::string& text) {
  std::vector<std::size_t> ends = {0};
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (is_inside_code_point(text[i])) continue;
    if (is_space(text[i]) || !is_ascii(text[i]) || !is_ascii(text[i - 1]) ||
        i - ends.back() >= kLongestWord)
      ends.push_back(i);
  }
  ends.push_back(text.size());
  return ends;
}

std::string unread_words(const ReadPrompt& read, const std::string& prompt, std::int64_t limit) {
  const auto ends = ends_of_words(prompt);
  const auto is_read = [&](std::size_t end) {
    return read.tokens(prompt.substr(0, end)) - read.behind() <= limit;
  };
  const auto first_unread = std::partition_point(ends.begin(), ends.end(), is_read);
  if (first_unread == ends.end()) return "";
  return prompt.substr(first_unread == ends.begin() ? 0 : *(first_unread - 1));
}

}  // namespace

void warn_of_cut(std::int64_t tokens, const Warn& warn, const std::string& reader) {
  if (warn)
    warn(text_of("the prompt is longer than the ", tokens, " tokens that ", reader,
                 ": its end is ignored"));
}

PromptCounter::PromptCounter(std::vector<PromptReader> readers, const std::filesystem::path& folder)
    : readers_(std::move(readers)) {
  for (const auto& reader : readers_)
    tokenizers_.push_back(load_tokenizer(folder / reader.tokenizer));
}

std::vector<PromptTokens> PromptCounter::count(const std::string& prompt, const std::string& second,
                                               int max_sequence_length) const {
  std::vector<PromptTokens> all;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    const auto& reader = readers_[i];
    const ReadPrompt read(reader, *tokenizers_[i]);
    const bool is_second = reader.reads == PromptReader::Reads::kSecondPrompt && !second.empty();
    const auto& text = is_second ? second : prompt;
    auto limit = reader.limit == PromptReader::Limit::kTokenizer
                     ? tokenizers_[i]->model_max_length()
                     : std::int64_t(max_sequence_length);
    if (reader.most > 0) limit = std::min(limit, reader.most);
    PromptTokens counted{.encoder = reader.encoder, .tokens = read.tokens(text), .limit = limit};
    if (counted.tokens > limit && reader.keeps == PromptReader::Keeps::kBeginning)
      counted.cut = unread_words(read, text, limit);
    all.push_back(std::move(counted));
  }
  return all;
}

}  // namespace braid
