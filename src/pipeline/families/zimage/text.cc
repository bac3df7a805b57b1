#include "pipeline/families/zimage/text.h"

#include <ATen/ATen.h>

#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

std::string chat_of(const std::string& prompt) { return qwen3_chat(prompt, Thinking::kAllowed); }

}  // namespace

std::vector<PromptReader> zimage_prompt_readers() {
  return {{.tokenizer = "tokenizer", .chat = chat_of}};
}

ZImageText::ZImageText(const std::filesystem::path& tokenizer, at::Device device,
                       Paged<CausalLm> model, const Warn& warn)
    : device_(device), tokenizer_(load_tokenizer(tokenizer)), model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurnsOfTemplate, tokenizer);
  warn_of_other_template(tokenizer, kTurnsOfTemplate, warn);
}

Condition ZImageText::encode(const Prompt& prompt, int max_sequence_length,
                             const Warn& warn) const {
  const auto encoding = tokenizer_->encode(chat_of(prompt.text), max_sequence_length);
  if (encoding.truncated) warn_of_cut(max_sequence_length, warn);
  const auto ids_BL = at::tensor(encoding.ids, at::kLong).unsqueeze(0).to(device_);
  const TextRun text{.begin = encoding.begin, .count = encoding.length};
  const auto in_use = model_.page.use();
  const auto encoded = model_.network(ids_BL, std::span(&text, 1), Pads::kSkipped);
  return {.text_BTC = encoded.narrow(1, text.begin, text.count).contiguous(), .pooled_BC = {}};
}

}  // namespace braid
