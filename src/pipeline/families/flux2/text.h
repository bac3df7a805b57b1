// The text encoder of FLUX.2 and its tokenizer: prompts become turns of a chat.
#pragma once

#include "models/causal_lm/model.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/flux2/flux2.h"
#include "pipeline/families/paged.h"
#include "pipeline/families/prompt_tokens.h"
#include "text/tokenizer.h"

namespace braid {

// The text encoder's hidden states that form the embedded prompt.
HiddenStates flux2_states(Flux2Kind kind);

std::vector<PromptReader> flux2_prompt_readers(Flux2Kind kind);

class Flux2Text : public TextEncoders {
 public:
  // Throws InputError if the tokenizer lacks a token of the chat.
  Flux2Text(Flux2Kind kind, const std::filesystem::path& tokenizer, at::Device device,
            Paged<CausalLm> model, const Warn& warn);

  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  Flux2Kind kind_;
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<CausalLm> model_;
};

}  // namespace braid
