// The Qwen-Image transformer (Qwen Team, 2025; diffusers' QwenImageTransformer2DModel), written for
// one device: FLUX.1's double blocks with other layers before them.
#pragma once

#include "models/qwen_image/ends.h"
#include "models/qwen_image/modulators.h"
#include "nn/block_list.h"
#include "nn/rope.h"

namespace braid {

class QwenImage {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // With `run`, only the tensors of its blocks are read; the others are checked.
  QwenImage(const QwenImageConfig& config, const Weights& w, Attend attend = ops::attention,
            std::optional<BlockRange> run = {});

  // Advances the packed state of the previous run by this run's blocks, with this run's
  // `modulations_BM`. The first run starts from the input; the last returns the velocity. The
  // velocity is [B I C]. The timestep is sigma, of the weights' dtype. Positions have 3 axes: item,
  // and row and column from its centre; text is at its place on all three.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // condition(): the conditioning vectors [S E], on the first run only. modulations(): this run's
  // modulations for several of them.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(
      const std::vector<Tensor>& conditions_SE,
      const std::function<void()>& before_layer = [] {}) const;
  std::int64_t num_modulations() const;

  const QwenImageConfig& config() const { return config_; }

 private:
  FluxState begin(const DenoiserInput& in, const Tensor& state) const;

  QwenImageConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<QwenImageInputs> inputs_;
  QwenImageModulators modulators_;
  BlockList<FluxDoubleBlock> blocks_;
  std::optional<FluxOutput> output_;
};

}  // namespace braid
