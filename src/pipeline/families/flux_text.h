// The text encoders of FLUX.1 and their tokenizers.
#pragma once

#include <functional>
#include <memory>

#include "models/clip/model.h"
#include "models/t5/model.h"
#include "pipeline/memory/offload.h"
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
  // `quantize` is of T5, which is forty times as large as CLIP.
  FluxText(const ModelFiles& files, LoadOptions load, Quantize quantize = Quantize::kNone,
           const Paging& paging = {});

  // Throws InputError for text that is not UTF-8; tells `warn` of text that does not fit.
  Conditioning encode(const PromptPair& prompt, int max_sequence_length,
                      const std::function<void(const std::string&)>& warn) const;

 private:
  at::Device device_;
  std::unique_ptr<const Tokenizer> clip_tokenizer_, t5_tokenizer_;
  Paged<Clip> clip_;
  Paged<T5> t5_;
};

}  // namespace braid
