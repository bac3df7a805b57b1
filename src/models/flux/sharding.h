// The FLUX transformer's sharding under tensor parallelism.
#pragma once

#include "models/flux/config.h"
#include "weights/sharding.h"

namespace braid {

// The adaLN layers are a quarter of the parameters. If they are shared, each device computes a run
// of their outputs, which are gathered on all.
ShardingTable flux_sharding(const FluxConfig& config, SharedModulation modulation);

}  // namespace braid
