// The text encoder of Krea 2 and its tokenizer.
#pragma once

#include "pipeline/families/krea2/krea2.h"
#include "pipeline/families/paged.h"
#include "text/tokenizer.h"

namespace braid {

std::vector<PromptReader> krea2_prompt_readers();

class Krea2Text : public TextEncoders {
 public:
  // Throws InputError if the tokenizer lacks a token of the chat.
  Krea2Text(const std::filesystem::path& tokenizer, at::Device device, Paged<CausalLm> model);

  // The result has as many tokens as the prompt and the end of its chat. The reference pads between
  // the two, but nothing looks at pads and they take no positions.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  std::vector<std::int64_t> ids_of(const std::string& prompt, int max_sequence_length,
                                   const Warn& warn) const;

  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<CausalLm> model_;
};

}  // namespace braid
