// The vision tower of Qwen3-VL (Qwen Team, 2025; transformers' Qwen3VLVisionModel), written for one
// device. Patches that form one token are adjacent, in token order.
//
// Shape letters: N patches, M tokens, C width.
#pragma once

#include "models/qwen3_vl/config.h"
#include "nn/block_list.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace braid {

// Features of a picture: tokens for the language model, and those added after its layers.
struct VisionTokens {
  Tensor tokens_MC;
  std::vector<Tensor> added_MC;  // after layer 0, 1, ...
};

class VisionBlock {
 public:
  VisionBlock(const Weights& w, const VisionConfig& config);
  // The angles are float32; queries and keys are rotated in float32.
  Tensor operator()(const Tensor& x_1NC, const HalfSplitRope& rope) const;

 private:
  Tensor attend(const Tensor& x_1NC, const HalfSplitRope& rope) const;

  LayerNorm norm1_, norm2_;
  Linear qkv_, proj_, mlp_in_, mlp_out_;
  std::int64_t head_width_;
};

// Concatenates the patches of a token and applies two layers.
class PatchMerger {
 public:
  enum class Norm { kOfPatches, kOfTokens };
  PatchMerger(const Weights& w, const VisionConfig& config, Norm norm);
  Tensor operator()(const Tensor& x_1NC) const;  // [M out]

 private:
  std::int64_t merged_;
  LayerNorm norm_;
  Linear in_, out_;
  Norm kind_;
};

class VisionTower {
 public:
  VisionTower(const Weights& w, const VisionConfig& config);

  // picture [3 H W], normalised; its sides are multiples of config.pixels_per_token().
  VisionTokens operator()(const Tensor& picture_3HW) const;

 private:
  Tensor embedded(const Tensor& picture_3HW) const;  // [1 N C]

  VisionConfig config_;
  Tensor patch_weight_, patch_bias_, positions_PC_;
  BlockList<VisionBlock> blocks_;
  PatchMerger merger_;
  std::vector<PatchMerger> deepstack_mergers_;
};

}  // namespace braid
