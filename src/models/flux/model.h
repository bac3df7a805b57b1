// The FLUX.1 transformer (Black Forest Labs, 2024; diffusers' FluxTransformer2DModel), written for
// one device.
#pragma once

#include "models/flux/blocks.h"
#include "nn/predict.h"
#include "nn/rope.h"

namespace braid {

// Two dense layers with SiLU between them: how a scalar or the pooled prompt enters.
class FluxEmbedder {
 public:
  FluxEmbedder(const Weights& w, std::int64_t in, std::int64_t hidden);
  Tensor operator()(const Tensor& x_BC) const;

 private:
  Linear in_, out_;
};

class Flux {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  Flux(const FluxConfig& config, const Weights& w, Attend attend = ops::attention);

  // -> velocity [B I C]. `guidance_B` must be there exactly if the config has guidance_embeds.
  Tensor operator()(const DenoiserInput& in) const;

  const FluxConfig& config() const { return config_; }

 private:
  Tensor condition(const DenoiserInput& in) const;

  FluxConfig config_;
  Attend attend_;
  Linear image_in_, text_in_;
  FluxEmbedder time_in_, pooled_in_;
  std::optional<FluxEmbedder> guidance_in_;
  std::vector<FluxDoubleBlock> double_blocks_;
  std::vector<FluxSingleBlock> single_blocks_;
  Linear final_mod_, final_;
};

// t_B -> [B width]: cosines, then sines, of t * 10000^(-2k/width), float32 (Vaswani et al., 2017).
Tensor sinusoidal_embedding(const Tensor& t_B, std::int64_t width);

}  // namespace braid
