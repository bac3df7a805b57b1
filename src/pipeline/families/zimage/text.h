// The text encoder of Z-Image and its tokenizer.
#pragma once

#include "models/causal_lm/model.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/paged.h"
#include "pipeline/families/prompt_tokens.h"
#include "text/tokenizer.h"

namespace braid {

// The embedded state is the one before the last layer, which is not loaded.
inline const HiddenStates kZImageStates = {-2};

std::vector<PromptReader> zimage_prompt_readers();

class ZImageText : public TextEncoders {
 public:
  // Throws InputError if the tokenizer lacks a token of the chat.
  ZImageText(const std::filesystem::path& tokenizer, at::Device device, Paged<CausalLm> model,
             const Warn& warn);

  // The result has as many tokens as the prompt with its chat template.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<CausalLm> model_;
};

}  // namespace braid
