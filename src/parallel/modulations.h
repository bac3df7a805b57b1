// Modulations across the stages of pipeline parallelism: each stage computes those of its own
// blocks, but only the first embeds the timestep.
#pragma once

#include "comm/group.h"
#include "nn/denoiser_part.h"
#include "parallel/regions.h"

namespace braid {

// Computes modulations for the blocks of this rank's `part`. It is collective over the stages,
// which pass the same pictures. Empty if the part computes its own modulations. `before_layer` may
// throw to stop.
Modulate modulate_over(
    Group stages, const DenoiserPart& part, std::function<void()> before_layer = [] {});

// Adds modulations to inputs (or controls) that lack them, before passing them on.
PredictAll with_modulations(Modulate modulate, PredictAll inner);
Follow with_modulations(const Controls& controls);

}  // namespace braid
