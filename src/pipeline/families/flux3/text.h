// The text encoder of FLUX.3 and its tokenizer.
#pragma once

#include "models/causal_lm/model.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/flux3/flux3.h"
#include "pipeline/families/paged.h"
#include "text/tokenizer.h"

namespace braid {

constexpr int kFlux3LongestText = 8192;  // tokens
constexpr int kFlux3PlannedText = 560;   // of a caption with some boxes

// The text encoder's hidden states that form the embedded prompt, side by side.
HiddenStates flux3_states();

std::vector<PromptReader> flux3_prompt_readers();

class Flux3Text : public TextEncoders {
 public:
  // Throws InputError if the tokenizer lacks a token of the chat.
  Flux3Text(const std::filesystem::path& tokenizer, at::Device device, Paged<CausalLm> model,
            const Warn& warn);

  // Padded to a multiple of 80 tokens. The transformer was trained to see the pads, so their
  // number matters.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<CausalLm> model_;
};

}  // namespace braid
