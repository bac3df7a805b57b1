#include "pipeline/families/krea2/text.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "pipeline/families/chat_tokens.h"
#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

// Counts of tokens as the published tokenizer splits them. The transformer does not see the system
// turn and the beginning of the user's. Of a long prompt, what precedes the end of the chat is cut.
constexpr std::int64_t kKreaSystemTokens = 34, kEndTokens = 5;
constexpr std::int64_t kLongestEnd = 1 << 10;  // tokens

void warn_of_cut_prompt(int max_sequence_length, const Warn& warn) {
  if (max_sequence_length > kEndTokens) return warn_of_cut(max_sequence_length - kEndTokens, warn);
  if (warn)
    warn(text_of("`max_sequence_length` should be at least ", kEndTokens + 1,
                 " for the text encoder to read any tokens of the prompt, it is ",
                 max_sequence_length, ": the prompt is ignored"));
}

}  // namespace

std::vector<PromptReader> krea2_prompt_readers() {
  return {{.tokenizer = "tokenizer",
           .chat = [](const std::string& prompt) { return description_chat(prompt); },
           .unseen = kKreaSystemTokens,
           .behind = kEndTokens}};
}

Krea2Text::Krea2Text(const std::filesystem::path& tokenizer, at::Device device,
                     Paged<CausalLm> model)
    : device_(device), tokenizer_(load_tokenizer(tokenizer)), model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurns, tokenizer);
  check_pads_on_the_right(*tokenizer_, tokenizer);
}

// The reference draws with fewer tokens than the end of the chat has, too: nothing of the prompt is
// left then.
std::vector<std::int64_t> Krea2Text::ids_of(const std::string& prompt, int max_sequence_length,
                                            const Warn& warn) const {
  const auto most = max_sequence_length + kKreaSystemTokens - kEndTokens;
  const auto read = tokenizer_->encode(description_chat(prompt), most);
  if (read.truncated) warn_of_cut_prompt(max_sequence_length, warn);
  std::vector<std::int64_t> ids;
  for (const auto& part : {read, tokenizer_->encode(std::string(kAssistantTurn), kLongestEnd)}) {
    const auto first = part.ids.begin() + part.begin;
    ids.insert(ids.end(), first, first + part.length);
  }
  return ids;
}

Condition Krea2Text::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto ids_BL =
      at::tensor(ids_of(prompt.text, max_sequence_length, warn), at::kLong).unsqueeze(0);
  const TextRun text{.begin = 0, .count = ids_BL.size(1)};
  const auto in_use = model_.page.use();
  const auto taps = model_.network(ids_BL.to(device_), std::span(&text, 1), Pads::kSkipped);
  return {.text_BTC = taps.slice(1, kKreaSystemTokens).contiguous(), .pooled_BC = {}};
}

}  // namespace braid
