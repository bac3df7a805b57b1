// The two kinds of blocks of a FLUX.1 transformer.
//
// Shape letters: B batch, T text tokens, I image tokens, L = T + I, C hidden width, H heads,
// D head width.
#pragma once

#include "models/flux/config.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/modulations.h"
#include "nn/norm.h"

namespace braid {

// One side, image or text, of a double block.
class FluxSide {
 public:
  FluxSide(const Weights& block, const std::string& side, const FluxConfig& config);

  struct Modulations {
    Modulation attention, mlp;
  };
  struct Qkv {
    ops::NormedHeads q, k;  // not normalised yet, with the weights for it
    Tensor v;               // [B L H D]
  };
  Qkv project(const Tensor& x_BLC, const Modulation& m) const;
  Tensor widen(const Tensor& x_BLC, const Modulation& m) const;  // the MLP's hidden activations

  const Linear& projection() const { return proj_; }
  const Linear& mlp_out() const { return mlp_out_; }

 private:
  Linear qkv_, proj_, mlp_in_, mlp_out_;
  RmsNorm q_norm_, k_norm_;
  std::int64_t head_width_;
};

// Image and text keep their own weights and meet in attention.
class FluxDoubleBlock {
 public:
  FluxDoubleBlock(const Weights& w, const FluxConfig& config);

  struct Tokens {
    Tensor image_BIC, text_BTC;
  };
  // `modulations_BM` is what FluxDoubleModulator makes.
  Tokens operator()(const Tokens& x, const Tensor& modulations_BM, const Rope& rope,
                    const Attend& attend) const;

 private:
  Tokens attend(const Tokens& x, const FluxSide::Modulations& image_mod,
                const FluxSide::Modulations& text_mod, const Rope& rope,
                const Attend& attend) const;

  FluxSide image_, text_;
};

// Attention and MLP side by side on all tokens at once.
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

// The adaLN layers of these blocks, of silu of the conditioning vector: M = 12 C, the image's
// before the text's, and M = 3 C.
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
