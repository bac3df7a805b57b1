// The blocks of a JoyAI-Image-Edit transformer.
//
// Shape letters: B batch, C hidden width, V vectors.
#pragma once

#include "models/joy/config.h"
#include "nn/joint_block.h"

namespace braid {

// All blocks share six modulation vectors; each side adds its own table to them.
class JoyBlock {
 public:
  JoyBlock(const Weights& w, const JoyConfig& config);
  JointTokens operator()(const JointTokens& x, const Tensor& vectors_BVC, const Rope& rope,
                         const Attend& attend) const;

 private:
  Tensor image_table_1VC_, text_table_1VC_;
  JointBlock joint_;
};

}  // namespace braid
