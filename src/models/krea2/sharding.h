// The Krea 2 transformer's sharding under tensor parallelism.
#pragma once

#include "models/krea2/config.h"
#include "weights/sharding.h"

namespace braid {

// A device gets the heads of keys and values that its queries need, so that some are copied.
// One layer computes the modulations of all blocks; if it is split too, it needs one gather per
// picture. The blocks that see only the text, a fortieth of the parameters, are whole everywhere.
ShardingTable krea2_sharding(const Krea2Config& config, SharedModulation modulation);

}  // namespace braid
