// Evaluates ControlNets around a denoiser, on each rank's own tokens.
#pragma once

#include "parallel/regions.h"

namespace braid {

// Computes the residuals of inputs that have controls before `inner` sees them. All inputs of a
// call share their controls, which are evaluated once. The stages of pipeline parallelism divide
// the pictures, and each gets all residuals. Without `follow`, returns `inner`.
PredictAll with_controls(Group stages, Follow follow, PredictAll inner);

}  // namespace braid
