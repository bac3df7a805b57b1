// What modulates a denoiser's blocks, across the stages of a layer split: each has its own blocks',
// and only the first one embeds the timestep.
#pragma once

#include "comm/group.h"
#include "nn/denoiser_part.h"
#include "parallel/regions.h"

namespace braid {

// Of the blocks of this rank's `part`. Collective over the stages, which give the same pictures.
// Empty where the part makes it itself.
Modulate modulate_over(Group stages, const DenoiserPart& part);

// Gives inputs that bring no modulations theirs before they are seen; controls likewise.
PredictAll with_modulations(Modulate modulate, PredictAll inner);
Follow with_modulations(const Controls& controls);

}  // namespace braid
