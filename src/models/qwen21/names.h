// The spellings of Qwen-Image-2.1 checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Our names are diffusers', except that layers with the same input are one: queries, keys and
// values; gate and value of an MLP. What precedes the names is read off the checkpoint.
Names qwen21_names(const Checkpoint& checkpoint);

Names qwen21_names_of_diffusers();
// These are diffusers', but an MLP's gate and value are one tensor.
Names qwen21_names_in_one_file();
AdapterNames qwen21_adapter_names();  // of all spellings

}  // namespace braid
