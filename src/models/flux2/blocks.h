// The two kinds of blocks of a FLUX.2 transformer. All blocks of a kind are modulated alike.
//
// Shape letters: B batch, T text tokens, I image tokens, L = T + I, C hidden width, H heads,
// D head width.
#pragma once

#include "models/flux2/config.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace braid {

// One side, image or text, of a double block.
class Flux2Side {
 public:
  Flux2Side(const Weights& block, const std::string& side, const Flux2Config& config);

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
class Flux2DoubleBlock {
 public:
  Flux2DoubleBlock(const Weights& w, const Flux2Config& config);

  struct Tokens {
    Tensor image_BIC, text_BTC;
  };
  struct Modulations {
    Flux2Side::Modulations image, text;
  };
  Tokens operator()(const Tokens& x, const Modulations& m, const Rope& rope,
                    const Attend& attend) const;

 private:
  Tokens attend(const Tokens& x, const Modulations& m, const Rope& rope,
                const Attend& attend) const;

  Flux2Side image_, text_;
};

// Attention and MLP side by side on all tokens at once.
class Flux2SingleBlock {
 public:
  Flux2SingleBlock(const Weights& w, const Flux2Config& config);
  Tensor operator()(const Tensor& x_BLC, const Modulation& m, const Rope& rope,
                    const Attend& attend) const;

 private:
  Linear in_, out_;
  RmsNorm q_norm_, k_norm_;
  std::int64_t head_width_, hidden_, mlp_hidden_;
};

}  // namespace braid
