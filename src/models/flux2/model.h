// The FLUX.2 transformer (Black Forest Labs, 2025; diffusers' Flux2Transformer2DModel), written for
// one device.
#pragma once

#include "models/flux2/ends.h"
#include "nn/block_list.h"
#include "nn/rope.h"

namespace braid {

class Flux2 {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // `run` counts double blocks, then single ones. With it, only the tensors of its blocks are read;
  // the others are checked.
  Flux2(const Flux2Config& config, const Weights& w, Attend attend = ops::attention,
        std::optional<BlockRange> run = {});

  // Advances the packed state of the previous run by this run's blocks. The first run starts from
  // the input; the last returns the velocity. The velocity is [B N C], of the noise. `guidance_B`
  // must be defined exactly if the config has guidance_embeds.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  const Flux2Config& config() const { return config_; }

 private:
  Flux2State begin(const DenoiserInput& in, const Tensor& state) const;
  void run_double_blocks(Flux2State& x, const DenoiserInput& in, const Rope& rope) const;
  void run_single_blocks(Flux2State& x, const DenoiserInput& in, const Rope& rope) const;

  Flux2Config config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Flux2Inputs> inputs_;
  BlockList<Flux2DoubleBlock> double_blocks_;
  BlockList<Flux2SingleBlock> single_blocks_;
  std::optional<Flux2Output> output_;
};

}  // namespace braid
