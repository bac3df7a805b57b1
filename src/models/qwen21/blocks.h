// The blocks of a Qwen-Image-2.1 transformer: attention causal by blocks and a SwiGLU, each after a
// norm that is scaled, but not shifted.
//
// Shape letters: B batch, P tokens of the prefix, L tokens, C hidden width, D head width.
#pragma once

#include "models/qwen21/config.h"
#include "nn/attention.h"
#include "nn/linear.h"

namespace braid {

// What all blocks apply to one run of tokens: the prefix's, or the image's.
struct Qwen21Modulation {
  Modulation attention, mlp;  // shifts are 0
};

// Tokens of the prefix come first; none, some or all are of it.
struct Qwen21Runs {
  std::int64_t num_prefix = 0;
  Qwen21Modulation prefix = {}, image = {};
};

class Qwen21Attention {
 public:
  Qwen21Attention(const Weights& w, const Qwen21Config& config);
  // What the layer out() projects.
  Tensor attended(const Tensor& x_BLC, const Rope& rope, const Tensor& span_P2,
                  const Attend& attend) const;
  const Linear& out() const { return out_; }

 private:
  Linear qkv_;
  Tensor q_norm_D_, k_norm_D_;
  Linear out_;
  std::int64_t head_width_;
  double norm_eps_;
};

class Qwen21Block {
 public:
  Qwen21Block(const Weights& w, const Qwen21Config& config);
  // `span_P2` are the spans of the prefix here.
  Tensor operator()(const Tensor& x_BLC, const Qwen21Runs& runs, const Rope& rope,
                    const Tensor& span_P2, const Attend& attend) const;

 private:
  Tensor activated(const Tensor& x_BLC, const Qwen21Runs& runs) const;

  Qwen21Attention attention_;
  Linear gate_up_, out_;
  double norm_eps_;
};

}  // namespace braid
