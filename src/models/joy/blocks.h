// The blocks of a JoyAI-Image-Edit transformer.
//
// Shape letters: B batch, T text tokens, I image tokens, C hidden width, H heads, D head width,
// V vectors.
#pragma once

#include "models/joy/config.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace braid {

// One side, image or text, of a block. All blocks are modulated by the same six vectors, to which
// each side adds a table of its own.
class JoySide {
 public:
  JoySide(const Weights& block, const std::string& side, const JoyConfig& config);

  struct Modulations {
    Modulation attention, mlp;
  };
  Modulations modulations(const Tensor& vectors_BVC) const;
  struct Qkv {
    ops::NormedHeads q, k;  // not normalised yet, with the weights for it
    Tensor v;               // [B L H D]
  };
  Qkv project(const Tensor& x_BLC, const Modulation& m) const;
  Tensor widen(const Tensor& x_BLC, const Modulation& m) const;  // the MLP's hidden activations

  const Linear& projection() const { return proj_; }
  const Linear& mlp_out() const { return mlp_out_; }

 private:
  Tensor table_1VC_;
  Linear qkv_, proj_, mlp_in_, mlp_out_;
  RmsNorm q_norm_, k_norm_;
  std::int64_t head_width_;
};

// Image and text keep their own weights and meet in attention, image first.
class JoyBlock {
 public:
  JoyBlock(const Weights& w, const JoyConfig& config);

  struct Tokens {
    Tensor image_BIC, text_BTC;
  };
  Tokens operator()(const Tokens& x, const Tensor& vectors_BVC, const Rope& rope,
                    const Attend& attend) const;

 private:
  JoySide image_, text_;
};

}  // namespace braid
