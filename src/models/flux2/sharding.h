// The FLUX.2 transformer's sharding under tensor parallelism.
#pragma once

#include "models/flux2/config.h"
#include "weights/sharding.h"

namespace braid {

// All blocks share three modulation layers. If these are split too, each needs one gather per
// evaluation.
ShardingTable flux2_sharding(const Flux2Config& config, SharedModulation modulation);

}  // namespace braid
