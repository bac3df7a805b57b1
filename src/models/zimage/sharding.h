// How the Z-Image transformer is shared under tensor parallelism.
#pragma once

#include "models/zimage/config.h"
#include "weights/sharding.h"

namespace braid {

// Throws InputError unless `size` devices can share the heads evenly. The layers that make
// modulations, a fiftieth of the parameters, are whole on every device.
ShardingTable zimage_sharding(const ZImageConfig& config, int size);

}  // namespace braid
