// The spellings of Krea 2 checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Our names are diffusers', except that layers with the same input are one: queries and output
// gate, keys and values, gate and value of an MLP. The spelling and its prefix are read off the
// checkpoint.
Names krea2_names(const Checkpoint& checkpoint);

Names krea2_names_of_diffusers();
Names krea2_names_in_one_file();

// Covers both spellings, and diffusers' without the index of to_out.
AdapterNames krea2_adapter_names();

}  // namespace braid
