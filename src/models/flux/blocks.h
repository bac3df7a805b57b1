// The two kinds of blocks of a FLUX.1 transformer.
//
// Shape letters: B batch, L tokens of text and image, C hidden width.
#pragma once

#include "models/flux/config.h"
#include "nn/joint_block.h"
#include "nn/modulations.h"

namespace braid {

// Image and text keep their own weights and meet in attention.
class FluxDoubleBlock {
 public:
  FluxDoubleBlock(const Weights& w, const FluxConfig& config);
  // `modulations_BM` comes from FluxDoubleModulator.
  JointTokens operator()(const JointTokens& x, const Tensor& modulations_BM, const Rope& rope,
                         const Attend& attend) const;
  JointTokens operator()(const JointTokens& x, const JointModulations& modulations,
                         const Rope& rope, const Attend& attend) const {
    return joint_(x, modulations, rope, attend);
  }

 private:
  JointBlock joint_;
};

// Attention and MLP in parallel, on all tokens at once.
class FluxSingleBlock {
 public:
  FluxSingleBlock(const Weights& w, const FluxConfig& config);
  Tensor operator()(const Tensor& x_BLC, const Tensor& modulations_BM, const Rope& rope,
                    const Attend& attend) const;

 private:
  Linear in_, out_;
  RmsNorm q_norm_, k_norm_;
  std::int64_t head_width_;
};

// The adaLN layers of these blocks, applied to silu of the conditioning vector. M = 12 C for double
// blocks, image before text; M = 3 C for single ones.
class FluxDoubleModulator {
 public:
  FluxDoubleModulator(const Weights& w, const FluxConfig& config);
  void add_to(ModulationsMade& made) const;

 private:
  Linear image_, text_;
};

class FluxSingleModulator {
 public:
  FluxSingleModulator(const Weights& w, const FluxConfig& config);
  void add_to(ModulationsMade& made) const { made.add(lin_); }

 private:
  Linear lin_;
};

// [B n*3*C] -> n modulations of [B 1 C] tensors, in the order shift, scale, gate
std::vector<Modulation> split_modulations(const Tensor& packed_BC, std::int64_t n);

}  // namespace braid
