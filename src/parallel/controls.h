// Where ControlNets are evaluated: around a denoiser, on each rank's own tokens.
#pragma once

#include "parallel/regions.h"

namespace braid {

// Gives inputs with controls their residuals before `inner` sees them. All inputs of a call have
// their controls in common, which are followed once. The stages of a layer split share the pictures
// out, and each gets the residuals of all. Without `follow` it is `inner`.
PredictAll with_controls(Group stages, Follow follow, PredictAll inner);

}  // namespace braid
