// The Z-Image transformer's sharding under tensor parallelism.
#pragma once

#include "models/zimage/config.h"
#include "weights/sharding.h"

namespace braid {

// Some devices may have one head more than others. The modulation layers, a fiftieth of the
// parameters, are whole on every device.
ShardingTable zimage_sharding(const ZImageConfig& config);

}  // namespace braid
