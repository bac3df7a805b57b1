// The Qwen-Image-2.1 transformer's sharding under tensor parallelism.
#pragma once

#include "models/qwen21/config.h"
#include "weights/sharding.h"

namespace braid {

// Two layers make the modulations of all blocks; if they are split too, they need a gather each per
// picture.
ShardingTable qwen21_sharding(const Qwen21Config& config, SharedModulation modulation);

}  // namespace braid
