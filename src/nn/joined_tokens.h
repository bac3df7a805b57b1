// Joins runs of tokens, which stand side by side, into one sequence.
#pragma once

#include "nn/predict.h"

namespace braid {

// The noise, with its extra channels, then the references.
Tensor image_tokens(const DenoiserInput& in);

// Text, then image. Both are let go of, and what a CPU's allocator has kept of the blocks before is
// given back: their tensors are smaller than those of blocks on all tokens, so that it would only
// add to the peak, 0.2 GB for FLUX.1 in float32 at 512x512.
Tensor joined_tokens(Tensor& text_BTC, Tensor& image_BIC);

// Two runs of tokens as one: where they lie, if the second lies behind the first, otherwise a copy.
//   [B L1 H D] [B L2 H D] -> [B L1+L2 H D]
Tensor one_behind_other(const Tensor& first_BLHD, const Tensor& second_BLHD);

}  // namespace braid
