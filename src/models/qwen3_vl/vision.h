// The vision tower of Qwen3-VL (Qwen Team, 2025; transformers' Qwen3VLVisionModel), written for one
// device. Patches are in the order of the tokens they become: those of a token follow each other.
//
// Shape letters: N patches, M tokens, C width.
#pragma once

#include "models/qwen3_vl/config.h"
#include "nn/block_list.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace braid {

// What is seen of a picture: tokens for the language model, and what is added behind its layers.
struct Seen {
  Tensor tokens_MC;
  std::vector<Tensor> added_MC;  // behind layer 0, 1, ...
};

class VisionBlock {
 public:
  VisionBlock(const Weights& w, const VisionConfig& config);
  // The angles are float32, in which queries and keys are rotated.
  Tensor operator()(const Tensor& x_1NC, const HalfSplitRope& rope) const;

 private:
  Tensor attend(const Tensor& x_1NC, const HalfSplitRope& rope) const;

  LayerNorm norm1_, norm2_;
  Linear qkv_, proj_, mlp_in_, mlp_out_;
  std::int64_t head_width_;
};

// The patches of a token as one vector, through two layers.
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

  // picture [3 H W], normed; its sides are multiples of config.pixels_per_token().
  Seen operator()(const Tensor& picture_3HW) const;

 private:
  Tensor embedded(const Tensor& picture_3HW) const;

  VisionConfig config_;
  Tensor patch_weight_, patch_bias_, positions_PC_;
  BlockList<VisionBlock> blocks_;
  PatchMerger merger_;
  std::vector<PatchMerger> deepstack_mergers_;
};

}  // namespace braid
