// How a Krea 2 transformer makes one run of text tokens of several layers' hidden states.
//
// Shape letters: B batch, T text tokens, K taps, W width of a tap, C hidden width.
#pragma once

#include "models/krea2/blocks.h"
#include "nn/predict.h"

namespace braid {

// Blocks that attend across the taps of each token; one number per tap that mixes them; blocks that
// attend across the tokens; two dense layers.
class Krea2TextFusion {
 public:
  Krea2TextFusion(const Weights& w, const Krea2Config& config);
  // taps_BTC [B T K W], side by side -> [B T C]
  Tensor operator()(const Tensor& taps_BTC, const Attend& attend, const Watch& watch) const;

 private:
  std::vector<Krea2TextBlock> tap_blocks_;
  Tensor mixer_1K_;
  std::vector<Krea2TextBlock> text_blocks_;
  Tensor norm_W_;
  Linear in_, out_;
  double norm_eps_;
};

}  // namespace braid
