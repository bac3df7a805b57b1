// The Krea 2 transformer (Krea, 2026; diffusers' Krea2Transformer2DModel), written for one device.
#pragma once

#include <optional>

#include "models/krea2/ends.h"
#include "models/krea2/text_fusion.h"
#include "nn/block_list.h"
#include "nn/modulations.h"
#include "nn/rope.h"

namespace braid {

// Text and image tokens are one sequence, text first. A text token arrives as several hidden states
// side by side, which are fused once per picture. Positions have 3 axes: none, row, column; text is
// at the origin.
class Krea2 {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // `run` counts the blocks, then the fusion of the text as one more. With it, only the tensors of
  // its blocks are read; the others are checked.
  Krea2(const Krea2Config& config, const Weights& w, Attend attend = ops::attention,
        std::optional<BlockRange> run = {});

  // Advances the tokens of the previous run by this run's blocks, with this run's `modulations_BM`.
  // The first run starts from the input, whose text must have been fused unless that is done in
  // this run; the last returns the velocity. The velocity is [B I C]. The timestep is sigma, of the
  // weights' dtype.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // The text [B T C] once it was fused in this run or one before; until then the hidden states.
  Tensor refine(const DenoiserInput& in, const Tensor& text_BTC) const;

  // condition(): the vectors [S M] of steps, on the first run only. modulations(): those that this
  // run needs of them.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(
      const std::vector<Tensor>& conditions_SM,
      const std::function<void()>& before_layer = [] {}) const;
  std::int64_t num_modulations() const;

  const Krea2Config& config() const { return config_; }

 private:
  Tensor fused_text(const DenoiserInput& in) const;

  Krea2Config config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Krea2Inputs> inputs_;
  BlockList<Krea2Block> blocks_;
  BlockList<Krea2TextFusion> text_fusion_;  // none or one
  std::optional<Krea2Output> output_;
};

}  // namespace braid
