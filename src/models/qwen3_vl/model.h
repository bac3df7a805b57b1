// Qwen3-VL as an encoder of prompts with pictures (Qwen Team, 2025; transformers'
// Qwen3VLForConditionalGeneration), written for one device. The embedding is the last layer's
// output, before the final norm. In the text, a picture is replaced by the vision tower's tokens;
// further features are added after the first layers (DeepStack, Meng et al., 2024).
#pragma once

#include "models/causal_lm/model.h"
#include "models/causal_lm/picture_places.h"
#include "models/qwen3_vl/vision.h"

namespace braid {

// The vision tower's output for several pictures, and each picture's size in tokens.
struct EncodedPictures {
  std::vector<TokenGrid> grids = {};
  VisionTokens all = {};  // undefined if there are no pictures
};

class Qwen3Vl {
 public:
  Qwen3Vl(const Qwen3VlConfig& config, const Weights& w);

  // Pictures [3 H W], normalised for the tower; results are concatenated.
  EncodedPictures encode(const std::vector<Tensor>& pictures) const;

  // `ids` has one config.image_token per picture -> [1 T C] for T tokens, including the pictures'.
  // Throws InputError if their number differs from the number of pictures, and for an id outside
  // the vocabulary.
  Tensor operator()(const std::vector<std::int64_t>& ids, const EncodedPictures& pictures) const;

  const Qwen3VlConfig& config() const { return config_; }

 private:
  Qwen3VlConfig config_;
  at::TensorOptions options_;
  VisionTower tower_;
  TokenTable embedding_;
  BlockList<CausalLmLayer> layers_;
};

}  // namespace braid
