// The text encoders of FLUX.1 and their tokenizers.
#pragma once

#include "models/clip/model.h"
#include "models/t5/model.h"
#include "pipeline/families/family.h"
#include "pipeline/families/paged.h"
#include "text/tokenizer.h"

namespace braid {

std::vector<PromptReader> flux_prompt_readers();

class FluxText : public TextEncoders {
 public:
  // `folder` holds the tokenizers.
  FluxText(const std::filesystem::path& folder, at::Device device, Paged<Clip> clip, Paged<T5> t5);

  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  at::Device device_;
  std::unique_ptr<const Tokenizer> clip_tokenizer_, t5_tokenizer_;
  Paged<Clip> clip_;
  Paged<T5> t5_;
};

}  // namespace braid
