// The text encoders of FLUX.1 and their tokenizers.
#pragma once

#include <functional>
#include <memory>

#include "models/clip/model.h"
#include "models/t5/model.h"
#include "pipeline/settings.h"
#include "text/tokenizer.h"

namespace braid {

// One embedded prompt, batch 1. T text tokens, C widths.
struct Conditioning {
  Tensor text_1TC, pooled_1C;
};

class FluxText {
 public:
  // With `load.tensor_parallel` both encoders are shared; all of its ranks then encode together.
  FluxText(const ModelFiles& files, const LoadOptions& load);

  // Throws InputError for text that is not UTF-8; tells `warn` of text that does not fit.
  Conditioning encode(const PromptPair& prompt, int max_sequence_length,
                      const std::function<void(const std::string&)>& warn) const;

 private:
  at::Device device_;
  std::unique_ptr<const Tokenizer> clip_tokenizer_, t5_tokenizer_;
  Clip clip_;
  T5 t5_;
};

}  // namespace braid
