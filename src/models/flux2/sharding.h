// The FLUX.2 transformer's sharding under tensor parallelism.
#pragma once

#include "models/flux2/config.h"
#include "weights/sharding.h"

namespace braid {

// Throws InputError if there are fewer heads than devices. All blocks share three modulation
// layers. If these are split too, each needs one gather per evaluation.
ShardingTable flux2_sharding(const Flux2Config& config, int size, SharedModulation modulation);

}  // namespace braid
