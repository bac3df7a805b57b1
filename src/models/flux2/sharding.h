// How the FLUX.2 transformer is shared under tensor parallelism.
#pragma once

#include "models/flux2/config.h"
#include "weights/sharding.h"

namespace braid {

// Throws InputError unless `size` devices can share the heads evenly. All blocks share three
// modulation layers: shared among devices too, one gather an evaluation makes each of them whole.
ShardingTable flux2_sharding(const Flux2Config& config, int size, SharedModulation modulation);

}  // namespace braid
