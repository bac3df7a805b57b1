// Qwen2.5-VL as an encoder of prompts with pictures (Bai et al., 2025; transformers'
// Qwen2_5_VLForConditionalGeneration), written for one device. The embedding is the last layer's
// output after the final norm. In the text, a picture is replaced by the vision tower's tokens.
#pragma once

#include "models/causal_lm/model.h"
#include "models/causal_lm/picture_places.h"
#include "models/qwen25_vl/vision.h"

namespace braid {

// The vision tower's tokens of several pictures [M C], and each picture's size.
struct TowerTokens {
  std::vector<TokenGrid> grids = {};
  Tensor tokens_MC = {};  // undefined if there are no pictures
};

class Qwen25Vl {
 public:
  Qwen25Vl(const Qwen25VlConfig& config, const Weights& w);

  // Pictures [3 H W], normalised for the tower; results are concatenated.
  TowerTokens encode(const std::vector<Tensor>& pictures) const;

  // `ids` has one config.image_token per picture -> [1 T C] for T tokens, including the pictures'.
  // Throws InputError if their number differs from the number of pictures, for an id outside the
  // vocabulary and for more tokens than the language model's window.
  Tensor operator()(const std::vector<std::int64_t>& ids, const TowerTokens& pictures) const;

  const Qwen25VlConfig& config() const { return config_; }

 private:
  Qwen25VlConfig config_;
  at::TensorOptions options_;
  WindowVisionTower tower_;
  TokenTable embedding_;
  BlockList<CausalLmLayer> layers_;
  LlamaRmsNorm norm_;
};

}  // namespace braid
