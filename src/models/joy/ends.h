// The layers before and after the blocks of a JoyAI-Image-Edit transformer.
//
// Shape letters: B batch, N tokens of noise, T text tokens, I image tokens, C width, V vectors.
#pragma once

#include "models/joy/blocks.h"
#include "nn/embedder.h"
#include "nn/predict.h"

namespace braid {

// The state between two blocks. Image tokens are the noise's, then those of references.
struct JoyState {
  Tensor image_BIC, text_BTC;
  Tensor vectors_BVC;  // modulations, shared by all blocks

  // All three as one tensor [B I+T+V C], and back.
  Tensor pack() const;
  static JoyState unpack(const Tensor& packed, std::int64_t num_text);
};

class JoyInputs {
 public:
  JoyInputs(const Weights& w, const JoyConfig& config);
  JoyState operator()(const DenoiserInput& in) const;

 private:
  Tensor patches_in(const Tensor& x_BLC) const;

  Tensor patch_weight_, patch_bias_;
  Embedder time_in_;  // in float32, as in the reference
  Linear time_proj_, text_in_, text_out_;
};

class JoyOutput {
 public:
  JoyOutput(const Weights& w, const JoyConfig& config);
  // -> velocity [B N C] of the first N image tokens, channels slowest as in the input
  Tensor operator()(const JoyState& x, std::int64_t num_noise) const;

 private:
  Linear out_;
  std::int64_t channels_;
};

}  // namespace braid
