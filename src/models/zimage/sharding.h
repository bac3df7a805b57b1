// The Z-Image transformer's sharding under tensor parallelism.
#pragma once

#include "models/zimage/config.h"
#include "weights/sharding.h"

namespace braid {

// Some devices may have one head more than others. Throws InputError if there are fewer heads than
// devices. The modulation layers, a fiftieth of the parameters, are whole on every device.
ShardingTable zimage_sharding(const ZImageConfig& config, int size);

}  // namespace braid
