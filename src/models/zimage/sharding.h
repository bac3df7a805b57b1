// How the Z-Image transformer is shared under tensor parallelism.
#pragma once

#include "models/zimage/config.h"
#include "weights/sharding.h"

namespace braid {

// Some devices may have a head more than others. Throws InputError where there are fewer heads than
// devices. The layers that make modulations, a fiftieth of the parameters, are whole on every
// device.
ShardingTable zimage_sharding(const ZImageConfig& config, int size);

}  // namespace braid
