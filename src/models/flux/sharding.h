// How the FLUX transformer is shared under tensor parallelism.
#pragma once

#include "models/flux/config.h"
#include "weights/sharding.h"

namespace braid {

// Throws InputError unless `size` devices can share the heads evenly. The adaLN layers are a
// quarter of the parameters: shared, each device computes a run of their outputs and all get the
// whole.
ShardingTable flux_sharding(const FluxConfig& config, int size, SharedModulation modulation);

}  // namespace braid
