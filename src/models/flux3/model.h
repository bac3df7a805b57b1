// The FLUX.3 transformer (Black Forest Labs, 2026; diffusers' Flux3Transformer2DModel), written for
// one device.
#pragma once

#include "models/flux3/ends.h"
#include "nn/block_list.h"
#include "nn/modulations.h"
#include "nn/rope.h"

namespace braid {

// Text, image and references each pass through blocks of their own, where they see only
// themselves; then all pass through the single blocks together. Positions have 4 axes: none, row,
// column, and the place in the text or the number of a reference.
class Flux3 {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // `run` counts the image's blocks, whose first tells a cache whether others may be left out, the
  // text's, the references', then single ones. With it, only the tensors of its blocks are read;
  // the others are checked.
  Flux3(const Flux3Config& config, const Weights& w, Attend attend = ops::attention,
        std::optional<BlockRange> run = {});

  // Advances the packed tokens of the previous run by this run's blocks, with this run's
  // `modulations_BM`. The first run starts from the input; the last returns the velocity. The
  // velocity is [B N C], of the noise. The timestep is sigma, 0 to 1; `target_timestep_B` must be
  // defined exactly if the config has flow_map.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // condition(): the vectors [S M] of steps, on the first run only. modulations(): those that this
  // run needs of them.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(
      const std::vector<Tensor>& conditions_SM,
      const std::function<void()>& before_layer = [] {}) const;
  std::int64_t num_modulations() const;

  const Flux3Config& config() const { return config_; }

 private:
  void run_mode(Flux3Mode mode, Flux3Tokens& tokens, const Flux3Modulations& m, const Rope& rope,
                const Watch& watch) const;
  void run_single(Flux3Tokens& tokens, const Flux3Modulations& m, const Rope& rope,
                  const Watch& watch) const;

  Flux3Config config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Flux3Inputs> inputs_;
  BlockList<Flux3Block> image_blocks_, text_blocks_, reference_blocks_, single_blocks_;
  std::optional<Flux3Output> output_;
};

}  // namespace braid
