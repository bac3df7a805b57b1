// The block of a Z-Image transformer: attention and an MLP, each between two norms.
//
// Shape letters: B batch, L tokens, C hidden width, E width of the embedded timestep.
#pragma once

#include <optional>

#include "models/zimage/config.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/modulations.h"
#include "nn/norm.h"

namespace braid {

// Blocks that refine only text do not depend on the timestep.
enum class Modulated { kYes, kNo };

class ZImageBlock {
 public:
  ZImageBlock(const Weights& w, const ZImageConfig& config, Modulated modulated);
  // `modulations_BM` comes from the block's modulator: M = 4 C; undefined for Modulated::kNo.
  Tensor operator()(const Tensor& x_BLC, const Tensor& modulations_BM, const Rope& rope,
                    const Attend& attend) const;

 private:
  struct Gains {  // [B 1 C] each
    Tensor attention_scale, attention_gate, mlp_scale, mlp_gate;
  };
  Gains gains(const Tensor& x_BLC, const Tensor& modulations_BM) const;
  Tensor attended(const Tensor& x_BLC, const Rope& rope, const Attend& attend) const;
  Tensor activated(const Tensor& x_BLC) const;

  Linear qkv_, out_, mlp_in_, mlp_out_;
  std::optional<RmsNorm> q_norm_, k_norm_;
  LlamaRmsNorm before_attention_, behind_attention_, before_mlp_, behind_mlp_;
  Modulated modulated_;
  std::int64_t head_width_;
};

// A block's adaLN layer, applied to the embedded timestep.
class ZImageModulator {
 public:
  ZImageModulator(const Weights& w, const ZImageConfig& config);
  void add_to(ModulationsMade& made) const { made.add(layer_); }

 private:
  Linear layer_;
};

}  // namespace braid
