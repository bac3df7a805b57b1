// Where a denoiser's input is shared out among ranks, and its output made whole again.
#pragma once

#include "comm/group.h"
#include "nn/predict.h"

namespace braid {

// The velocities of several inputs: the branches of true guidance.
using PredictAll = std::function<std::vector<Tensor>(const std::vector<DenoiserInput>&)>;

PredictAll one_by_one(Predict predict);

// One picture of a batch: views.
DenoiserInput picture_of(DenoiserInput in, std::int64_t picture);

// Each rank runs `inner` on its share of every run of tokens: joint attention then sees each token
// once. Throws InputError when there are fewer tokens than ranks.
PredictAll split_tokens(Group ranks, PredictAll inner);

// Branch i on rank i mod size, gathered: every rank gets all of them, with the bits that one rank
// would compute. Throws InputError when there are more ranks than branches.
PredictAll split_branches(Group ranks, PredictAll inner);

}  // namespace braid
