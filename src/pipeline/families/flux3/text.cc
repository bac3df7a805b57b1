#include "pipeline/families/flux3/text.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

constexpr int kRunOfText = 80;  // tokens

std::string chat_of(const std::string& prompt) { return qwen3_chat(prompt, Thinking::kAllowed); }

}  // namespace

HiddenStates flux3_states() { return {4, 8, 12, 16, 20, 24, 28, 32}; }

std::vector<PromptReader> flux3_prompt_readers() {
  return {{.tokenizer = "tokenizer", .chat = chat_of}};
}

Flux3Text::Flux3Text(const std::filesystem::path& tokenizer, at::Device device,
                     Paged<CausalLm> model, const Warn& warn)
    : device_(device), tokenizer_(load_tokenizer(tokenizer)), model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurnsOfTemplate, tokenizer);
  warn_of_other_template(tokenizer, kTurnsOfTemplate, warn);
}

Condition Flux3Text::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  auto read = tokenizer_->encode(chat_of(prompt.text), max_sequence_length);
  if (read.truncated) warn_of_cut(max_sequence_length, warn);
  const auto runs = (read.length + kRunOfText - 1) / kRunOfText;
  const auto length = std::min<std::int64_t>(runs * kRunOfText, max_sequence_length);
  std::rotate(read.ids.begin(), read.ids.begin() + read.begin, read.ids.end());
  read.ids.resize(std::size_t(length));
  const auto ids_BL = at::tensor(read.ids, at::kLong).unsqueeze(0).to(device_);
  const TextRun text{.begin = 0, .count = read.length};
  const auto in_use = model_.page.use();
  return {.text_BTC = model_.network(ids_BL, std::span(&text, 1), Pads::kAtOne), .pooled_BC = {}};
}

}  // namespace braid
