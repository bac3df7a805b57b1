// Spellings of causal language model checkpoints, and the model's sharding.
#pragma once

#include <string>
#include <vector>

#include "models/causal_lm/config.h"
#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"
#include "weights/sharding.h"

namespace braid {

// Ours are transformers' names of the bare model; what stands before them is read off the
// checkpoint, or that they are llama.cpp's. The head over the vocabulary and what sees pictures is
// left unused.
Names causal_lm_names(const Checkpoint& checkpoint, const CausalLmConfig& config);

// Buffers of rotary embeddings, which some files hold and no class of transformers reads.
std::vector<std::string> rotary_buffers();

// Names adapters' layers, with what any of transformers' classes puts before the bare model's
// names.
AdapterNames causal_lm_adapter_names();

// Heads of keys and values are copied where there are fewer than devices.
ShardingTable causal_lm_sharding(const CausalLmConfig& config);

}  // namespace braid
