// The Qwen-Image-2.1 transformer (Qwen Team, 2026; diffusers' QwenImage21Transformer2DModel),
// written for one device.
#pragma once

#include <optional>

#include "models/qwen21/ends.h"
#include "nn/block_list.h"
#include "nn/modulations.h"
#include "nn/rope.h"

namespace braid {

// Text, references and image are one sequence, causal by blocks: text sees what stands before it,
// a picture also all of itself. Text and references have timestep 0 and see nothing of the image,
// which is last. Positions have 3 axes: place in the sequence, row and column from the picture's
// centre; text is at its place on all three.
class Qwen21 {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // With `run`, only the tensors of its blocks are read; the others are checked.
  Qwen21(const Qwen21Config& config, const Weights& w, Attend attend = attention_here,
         std::optional<BlockRange> run = {});

  // Advances the tokens of the previous run by this run's blocks, with this run's `modulations_BM`.
  // Takes the prefix and the noise together, or either alone. The last run returns the velocity.
  // The velocity is [B I C]. The timestep is sigma, of the weights' dtype.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // condition(): the vectors [S M] of steps, on the first run only. modulations(): those that this
  // run needs of them.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(
      const std::vector<Tensor>& conditions_SM,
      const std::function<void()>& before_layer = [] {}) const;
  std::int64_t num_modulations() const { return kQwen21Vectors * config_.hidden; }

  const Qwen21Config& config() const { return config_; }

 private:
  Qwen21Config config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Qwen21Inputs> inputs_;
  BlockList<Qwen21Block> blocks_;
  std::optional<Qwen21Output> output_;
};

}  // namespace braid
