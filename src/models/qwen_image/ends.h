// The layers before the blocks of a Qwen-Image transformer. Those after them are FLUX.1's.
//
// Shape letters: B batch, S steps, C hidden width.
#pragma once

#include "models/flux/ends.h"
#include "models/qwen_image/config.h"

namespace braid {

class QwenImageInputs {
 public:
  QwenImageInputs(const Weights& w, const QwenImageConfig& config);
  // Image tokens are the noise's, then those of references.
  FluxState operator()(const DenoiserInput& in) const;
  // Silu of the vectors of the steps' timesteps [S C]; behind them the same of timestep 0, [S 2 C],
  // if that modulates references.
  Tensor condition(const DenoiserInput& in) const;

 private:
  Tensor embedded_time(const Tensor& sigma_S) const;

  Linear image_in_;
  LlamaRmsNorm text_norm_;
  Linear text_in_;
  Embedder time_in_;
  Tensor additions_2C_;  // to the embedded timestep; undefined: none
  ReferenceTime reference_time_;
  at::ScalarType dtype_;
};

}  // namespace braid
