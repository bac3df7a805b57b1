// The two kinds of blocks of a FLUX.2 transformer. All blocks of a kind share their modulations.
//
// Shape letters: B batch, L tokens of text and image, C hidden width.
#pragma once

#include "models/flux2/config.h"
#include "nn/joint_block.h"

namespace braid {

class Flux2DoubleBlock : public JointBlock {
 public:
  Flux2DoubleBlock(const Weights& w, const Flux2Config& config);
};

// Attention and MLP in parallel, on all tokens at once.
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
