// Spellings of Qwen2.5-VL checkpoints, and the model's sharding.
#pragma once

#include "models/qwen25_vl/config.h"
#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"
#include "weights/sharding.h"

namespace braid {

// Our names are transformers' names for the bare model. Published files have the older ones, with
// the language model's layers beside the tower. The vocabulary head is ignored.
Names qwen25_vl_names(const Checkpoint& checkpoint);
Names published_qwen25_vl_names();

// Names adapters' layers, the vision tower's too.
AdapterNames qwen25_vl_adapter_names();

// Shards the language model's layers; the vision tower is whole on every device.
ShardingTable qwen25_vl_sharding(const Qwen25VlConfig& config);

}  // namespace braid
