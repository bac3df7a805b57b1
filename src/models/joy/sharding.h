// The JoyAI-Image-Edit transformer's sharding under tensor parallelism.
#pragma once

#include "models/joy/config.h"
#include "weights/sharding.h"

namespace braid {

// One layer computes the modulations of all blocks. If it is split too, it needs one gather per
// evaluation.
ShardingTable joy_sharding(const JoyConfig& config, SharedModulation modulation);

}  // namespace braid
