// The layers before and after the blocks of a Qwen-Image-2.1 transformer.
//
// Shape letters: B batch, S steps, I image tokens, L all tokens, C hidden width, M modulations.
#pragma once

#include "models/qwen21/blocks.h"
#include "nn/predict.h"

namespace braid {

// What a step's timestep becomes: four vectors that all blocks share for the image, the same of
// timestep 0 for the prefix, and the last norm's scale.
constexpr std::int64_t kQwen21BlockVectors = 4, kQwen21Vectors = 2 * kQwen21BlockVectors + 1;

class Qwen21Inputs {
 public:
  Qwen21Inputs(const Weights& w, const Qwen21Config& config);
  // The text, then the references, then the image: [B L C].
  Tensor tokens(const DenoiserInput& in) const;
  Tensor condition(const DenoiserInput& in) const;  // the vectors [S M], M = 9 C

 private:
  Tensor embedded_text(const Tensor& text_BTC) const;

  Linear image_in_;
  Tensor text_norm_;
  Linear text_in_, text_out_;
  Linear time_in_, time_out_, vectors_, last_scale_;
  double norm_eps_;
  bool causal_condition_;
  at::ScalarType dtype_;
};

class Qwen21Output {
 public:
  Qwen21Output(const Weights& w, const Qwen21Config& config);
  // -> velocity [B I C'], with the last norm's scale
  Tensor operator()(const Tensor& image_BIC, const Tensor& scale_BC) const;

 private:
  Linear out_;
  double norm_eps_;
};

}  // namespace braid
