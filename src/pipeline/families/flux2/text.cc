#include "pipeline/families/flux2/text.h"

#include <ATen/ATen.h>

#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

const ChatTokens kKleinChat{.tokens = {"<|im_start|>", "<|im_end|>", "<think>", "</think>"},
                            .template_says = {"<|im_start|>", "<|im_end|>", "assistant",
                                              "enable_thinking", "<think>\\n\\n</think>\\n\\n"},
                            .template_is_of_messages = true};
const ChatTokens kDevChat{
    .tokens = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]"},
    .template_says = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]"}};

// Removes the picture marker, as the reference does.
std::string without_pictures(std::string text) {
  const std::string mark = "[IMG]";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at))
    text.erase(at, mark.size());
  return text;
}

std::string chat_for(Flux2Kind kind, const std::string& prompt) {
  return kind == Flux2Kind::kDev ? mistral_chat(kFlux2SystemMessage, without_pictures(prompt))
                                 : qwen3_chat(prompt, Thinking::kSkipped);
}

}  // namespace

HiddenStates flux2_states(Flux2Kind kind) {
  return kind == Flux2Kind::kDev ? HiddenStates{10, 20, 30} : HiddenStates{9, 18, 27};
}

std::vector<PromptReader> flux2_prompt_readers(Flux2Kind kind) {
  return {{.tokenizer = "tokenizer",
           .chat = [kind](const std::string& prompt) { return chat_for(kind, prompt); }}};
}

Flux2Text::Flux2Text(Flux2Kind kind, const std::filesystem::path& tokenizer, at::Device device,
                     Paged<CausalLm> model, const Warn& warn)
    : kind_(kind),
      device_(device),
      tokenizer_(load_tokenizer(tokenizer)),
      model_(std::move(model)) {
  const auto& chat = kind == Flux2Kind::kDev ? kDevChat : kKleinChat;
  check_chat_tokens(*tokenizer_, chat, tokenizer);
  if (kind == Flux2Kind::kDev) check_begins_with(*tokenizer_, "<s>", tokenizer);
  warn_of_other_template(tokenizer, chat, warn);
}

// The transformer sees the hidden states of padding, too.
Condition Flux2Text::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto encoding = tokenizer_->encode(chat_for(kind_, prompt.text), max_sequence_length);
  if (encoding.truncated) warn_of_cut(max_sequence_length, warn);
  const auto ids = at::tensor(encoding.ids, at::kLong).unsqueeze(0).to(device_);
  const TextRun text{.begin = encoding.begin, .count = encoding.length};
  const auto in_use = model_.page.use();
  return {.text_BTC = model_.network(ids, std::span(&text, 1)), .pooled_BC = {}};
}

}  // namespace braid
