// The layers before and after the blocks of a FLUX.2 transformer.
//
// Shape letters: B batch, T text tokens, I image tokens, C hidden width.
#pragma once

#include "models/flux2/blocks.h"
#include "nn/embedder.h"
#include "nn/predict.h"

namespace braid {

// The state between two blocks. Image tokens are the noise's, then those of references.
struct Flux2State {
  Tensor image_BIC, text_BTC;
  Tensor vectors_BVC;  // all blocks' modulations, and the vector for the output's

  JointModulations double_modulations() const;
  Modulation single_modulation() const;
  Tensor output_vector_BC() const;  // silu of the conditioning vector

  // All three as one tensor [B T+I+V C], and back.
  Tensor pack() const;
  static Flux2State unpack(const Tensor& packed, std::int64_t num_text);
};

class Flux2Inputs {
 public:
  Flux2Inputs(const Weights& w, const Flux2Config& config);
  // `guidance_B` must be defined exactly if the config has guidance_embeds.
  Flux2State operator()(const DenoiserInput& in) const;

 private:
  Tensor condition(const DenoiserInput& in) const;

  Linear image_in_, text_in_;
  Embedder time_in_;
  std::optional<Embedder> guidance_in_;
  Linear image_mod_, text_mod_, single_mod_;
  std::int64_t sinusoid_;
};

class Flux2Output {
 public:
  Flux2Output(const Weights& w, const Flux2Config& config);
  // -> velocity [B N C] of the first N image tokens
  Tensor operator()(const Flux2State& x, std::int64_t num_noise) const;

 private:
  Linear mod_, out_;
};

}  // namespace braid
