// The layers before and after the blocks of a FLUX.1 transformer.
//
// Shape letters: B batch, T text tokens, I image tokens, C hidden width.
#pragma once

#include "models/flux/blocks.h"
#include "nn/embedder.h"
#include "nn/predict.h"

namespace braid {

// The state between two blocks. Image tokens are the noise's, then those of references.
struct FluxState {
  Tensor image_BIC, text_BTC;

  // Both as one tensor [B T+I C], and back.
  Tensor pack() const;
  static FluxState unpack(const Tensor& packed, std::int64_t num_text);
};

// The residual added after block `i` of `count`, or null. Runs of blocks that share a residual are
// equally long, except the last.
const Tensor* residual_behind(const std::vector<Tensor>& residuals, std::int64_t i,
                              std::int64_t count);

class FluxInputs {
 public:
  FluxInputs(const Weights& w, const FluxConfig& config);
  FluxState operator()(const DenoiserInput& in) const;
  // Silu of the conditioning vector. `guidance_B` must be defined exactly if the config has
  // guidance_embeds.
  Tensor condition(const DenoiserInput& in) const;

 private:
  Linear image_in_, text_in_;
  Embedder time_in_, pooled_in_;
  std::optional<Embedder> guidance_in_;
};

class FluxOutput {
 public:
  FluxOutput(const Weights& w, const FluxConfig& config);
  // Velocity of the first `num_noise` image tokens [B N C]; M = 2 C.
  Tensor operator()(const FluxState& x, const Tensor& modulations_BM, std::int64_t num_noise) const;
  void add_to(ModulationsMade& made) const { made.add(mod_); }
  Tensor modulation(const Tensor& condition_SC) const { return mod_(condition_SC); }  // [S 2C]

 private:
  Linear mod_, out_;
};

}  // namespace braid
