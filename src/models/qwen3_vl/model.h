// Qwen3-VL as the encoder of a prompt with pictures (Qwen Team, 2025; transformers'
// Qwen3VLForConditionalGeneration), written for one device: what its last layer makes, before the
// final norm. A picture stands in the text as the tokens that the vision tower makes of it; more of
// what it sees is added behind the first layers (DeepStack, Meng et al., 2024).
#pragma once

#include "models/causal_lm/model.h"
#include "models/qwen3_vl/vision.h"

namespace braid {

// What is seen of several pictures, and how large each is in tokens.
struct SeenTogether {
  struct Grid {
    std::int64_t rows, columns;
  };
  std::vector<Grid> grids = {};
  Seen all = {};  // nothing of no pictures
};

class Qwen3Vl {
 public:
  Qwen3Vl(const Qwen3VlConfig& config, const Weights& w);

  // Of pictures [3 H W], normed as the tower wants them; one after the other.
  SeenTogether see(const std::vector<Tensor>& pictures) const;

  // Of tokens in which each picture that was seen stands as one config.image_token -> [1 T C] of T
  // tokens, those of pictures included. Throws InputError where there are more or fewer such tokens
  // than pictures, or an id outside the vocabulary.
  Tensor operator()(const std::vector<std::int64_t>& ids, const SeenTogether& pictures) const;

  const Qwen3VlConfig& config() const { return config_; }

 private:
  Qwen3VlConfig config_;
  at::TensorOptions options_;
  VisionTower tower_;
  TokenTable embedding_;
  BlockList<CausalLmLayer> layers_;
};

}  // namespace braid
