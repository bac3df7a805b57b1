// The FLUX.3 transformer's sharding under tensor parallelism.
#pragma once

#include "models/flux3/config.h"
#include "weights/sharding.h"

namespace braid {

// A block sums the products of attention and MLP together: one reduction. Seven layers compute the
// modulations of all blocks; if these are split too, each needs one gather per picture.
ShardingTable flux3_sharding(const Flux3Config& config, SharedModulation modulation);

}  // namespace braid
