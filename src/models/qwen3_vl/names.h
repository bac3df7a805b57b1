// The spellings of Qwen3-VL checkpoints, and how such a model is shared.
#pragma once

#include "models/qwen3_vl/config.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"
#include "weights/sharding.h"

namespace braid {

// Ours are transformers' names of the bare model. The head over the vocabulary is left unused.
Names qwen3_vl_names(const Checkpoint& checkpoint);

// The language model's layers; the vision tower is whole on every device. Throws InputError unless
// `size` devices can share the heads of keys and values evenly.
ShardingTable qwen3_vl_sharding(const Qwen3VlConfig& config, int size);

}  // namespace braid
