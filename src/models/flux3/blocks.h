// The block of a FLUX.3 transformer: attention and MLP side by side. The same serves the blocks of
// one mode, and those of all tokens together, where each mode keeps its own modulation.
//
// Shape letters: B batch, L tokens, C hidden width.
#pragma once

#include <vector>

#include "models/flux3/config.h"
#include "nn/attention.h"
#include "nn/linear.h"

namespace braid {

// The tokens of one mode, and how a block modulates them.
struct ModulatedRun {
  Tensor x_BLC;
  Modulation modulation;
};

class Flux3Block {
 public:
  Flux3Block(const Weights& w, const Flux3Config& config);
  // The runs attend to each other in their order; `rope` has the positions of all. -> [B L C] each
  std::vector<Tensor> operator()(const std::vector<ModulatedRun>& runs, const Rope& rope,
                                 const Attend& attend) const;

 private:
  Tensor normed(const std::vector<ModulatedRun>& runs) const;
  struct Sides {
    Tensor attended_BLC, activated_BLM;
  };
  Sides sides(const Tensor& normed_BLC, const Rope& rope, const Attend& attend) const;
  Tensor computed(const Tensor& normed_BLC, const Rope& rope, const Attend& attend) const;

  Linear in_, attention_out_, mlp_out_;
  Tensor q_norm_D_, k_norm_D_;  // float32, whatever the other weights are
  std::int64_t head_width_, hidden_, mlp_hidden_;
  double norm_eps_;
};

}  // namespace braid
