// The layers before and after the blocks of a Z-Image transformer.
//
// Shape letters: B batch, T text tokens, I image tokens, C hidden width, E width of the embedded
// timestep.
#pragma once

#include "models/zimage/blocks.h"
#include "nn/embedder.h"
#include "nn/predict.h"

namespace braid {

// The state between two blocks.
struct ZImageState {
  Tensor image_BIC, text_BTC;

  // Both as one tensor [B T+I C], and back.
  Tensor pack() const;
  static ZImageState unpack(const Tensor& packed, std::int64_t num_text);
};

class ZImageInputs {
 public:
  ZImageInputs(const Weights& w, const ZImageConfig& config);
  Tensor image(const DenoiserInput& in) const;      // [B I C]
  Tensor text(const DenoiserInput& in) const;       // [B T C]
  Tensor condition(const DenoiserInput& in) const;  // the embedded timestep [B E]

 private:
  Linear image_in_, text_in_;
  LlamaRmsNorm text_norm_;
  Embedder time_in_;
  Tensor image_pad_1C_, text_pad_1C_;
  double time_scale_;
};

class ZImageOutput {
 public:
  ZImageOutput(const Weights& w, const ZImageConfig& config);
  Tensor operator()(const ZImageState& x, const Tensor& modulations_BM) const;  // velocity [B I C]
  void add_to(ModulationsMade& made) const;                                     // M = C

 private:
  Linear scale_, out_;
};

}  // namespace braid
