// The vision tower of Qwen2.5-VL (Bai et al., 2025; transformers'
// Qwen2_5_VisionTransformerPretrainedModel), written for one device. Most blocks attend within
// square windows of the picture.
//
// Shape letters: N patches, M tokens, C width.
#pragma once

#include "models/qwen25_vl/config.h"
#include "models/qwen3_vl/patches.h"
#include "nn/block_list.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace braid {

// Which tokens attend to each other: windows of equal size follow each other.
struct VisionWindows {
  struct Run {
    std::int64_t count, tokens;  // of windows, and in each
  };
  std::vector<std::int64_t> order;  // of the tokens, which are numbered row by row
  std::vector<Run> runs;
};
// The order for rows x columns tokens, with windows of `side` tokens along each side; those at the
// lower and right border are smaller.
VisionWindows windows_of(std::int64_t rows, std::int64_t columns, std::int64_t side);

class WindowVisionBlock {
 public:
  WindowVisionBlock(const Weights& w, const WindowVisionConfig& config);
  // The runs' tokens attend within their windows. The angles are float32; queries and keys are
  // rotated in float32.
  Tensor operator()(const Tensor& x_1NC, const std::vector<VisionWindows::Run>& runs,
                    const HalfSplitRope& rope) const;

 private:
  Tensor attend(const Tensor& x_1NC, const std::vector<VisionWindows::Run>& runs,
                const HalfSplitRope& rope) const;

  LlamaRmsNorm norm1_, norm2_;
  Linear qkv_, proj_, gate_, up_, down_;
  std::int64_t head_width_, patches_per_token_;
};

class WindowVisionTower {
 public:
  WindowVisionTower(const Weights& w, const WindowVisionConfig& config);

  // picture [3 H W], normalised; its sides are multiples of a token's pixels. The tokens [M C]
  // for the language model, row by row.
  Tensor operator()(const Tensor& picture_3HW) const;

 private:
  Tensor merged(const Tensor& x_1NC) const;

  WindowVisionConfig config_;
  Tensor patch_weight_;
  BlockList<WindowVisionBlock> blocks_;
  LlamaRmsNorm norm_;
  Linear merge_in_, merge_out_;
};

}  // namespace braid
