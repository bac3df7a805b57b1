// How the JoyAI-Image-Edit transformer is shared under tensor parallelism.
#pragma once

#include "models/joy/config.h"
#include "weights/sharding.h"

namespace braid {

// Throws InputError unless `size` devices can share the heads evenly. One layer makes what all
// blocks are modulated by: shared too, one gather an evaluation makes it whole.
ShardingTable joy_sharding(const JoyConfig& config, int size, SharedModulation modulation);

}  // namespace braid
