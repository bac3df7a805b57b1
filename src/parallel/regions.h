// Divides a denoiser's input among ranks and makes its output whole again.
#pragma once

#include "comm/group.h"
#include "nn/denoiser_shape.h"
#include "nn/predict.h"

namespace braid {

// The velocities of several inputs: the branches of true guidance.
using PredictAll = std::function<std::vector<Tensor>(const std::vector<DenoiserInput>&)>;

PredictAll one_by_one(Predict predict);

// One picture of a batch, as views.
DenoiserInput picture_of(DenoiserInput in, std::int64_t picture);

// Each rank runs `inner` on its share of every run of tokens, so joint attention sees each token
// once; text for cross-attention stays whole. Throws InputError if there are fewer tokens than
// ranks.
PredictAll split_tokens(Group ranks, PredictAll inner, TextTokens text = TextTokens::kJoint);

// Branch i runs on rank i mod size. Every rank gets all branches, bit-identical to one rank
// computing them. Throws InputError if there are more ranks than branches.
PredictAll split_cfg(Group ranks, PredictAll inner);

// The same branches on the same ranks, but each rank gets only its own; the others are undefined.
PredictAll own_branches(Group ranks, PredictAll inner);

}  // namespace braid
