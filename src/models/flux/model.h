// The FLUX.1 transformer (Black Forest Labs, 2024; diffusers' FluxTransformer2DModel), written for
// one device.
#pragma once

#include "models/flux/ends.h"
#include "models/flux/modulators.h"
#include "nn/block_list.h"
#include "nn/denoiser_shape.h"
#include "nn/rope.h"

namespace braid {

class Flux {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // With `run`, only the tensors of its blocks are read; the others are checked.
  Flux(const FluxConfig& config, const Weights& w, Attend attend = ops::attention,
       std::optional<BlockRange> run = {});

  // Advances the packed state of the previous run by this run's blocks, with this run's
  // `modulations_BM`. The first run starts from the input; the last returns the velocity. The
  // velocity is [B I C]. `guidance_B` must be defined exactly if the config has guidance_embeds.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // condition(): the conditioning vectors [S C], on the first run only. modulations(): this run's
  // modulations for several of them.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(
      const std::vector<Tensor>& conditions_SC,
      const std::function<void()>& before_layer = [] {}) const;
  std::int64_t num_modulations() const;

  const FluxConfig& config() const { return config_; }

 private:
  FluxState begin(const DenoiserInput& in, const Tensor& state) const;
  void run_double_blocks(FluxState& x, Modulations& mods, const DenoiserInput& in,
                         const Rope& rope) const;
  void run_single_blocks(FluxState& x, Modulations& mods, const DenoiserInput& in,
                         const Rope& rope) const;

  FluxConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<FluxInputs> inputs_;
  FluxModulators modulators_;
  BlockList<FluxDoubleBlock> double_blocks_;
  BlockList<FluxSingleBlock> single_blocks_;
  std::optional<FluxOutput> output_;
};

// Double blocks, then single ones; for forecasts.
DenoiserShape flux_shape(const FluxConfig& config);

}  // namespace braid
