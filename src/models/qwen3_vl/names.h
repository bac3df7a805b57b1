// Spellings of Qwen3-VL checkpoints, and the model's sharding.
#pragma once

#include "models/qwen3_vl/config.h"
#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"
#include "weights/sharding.h"

namespace braid {

// Our names are transformers' names for the bare model. The vocabulary head is ignored.
Names qwen3_vl_names(const Checkpoint& checkpoint);

// Names adapters' layers, the vision tower's too.
AdapterNames qwen3_vl_adapter_names();

// Shards the language model's layers; the vision tower is whole on every device.
ShardingTable qwen3_vl_sharding(const Qwen3VlConfig& config);

}  // namespace braid
