// The spellings of FLUX.3 checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Our names are Black Forest Labs', except that the layers with a block's normed tokens as input
// are one: queries, keys, values and the MLP's first. The spelling and its prefix are read off the
// checkpoint.
Names flux3_names(const Checkpoint& checkpoint);

Names flux3_names_of_diffusers();
Names flux3_names_in_one_file();  // Black Forest Labs'

// Covers both spellings, and diffusers' with fused projections or without the index of to_out.
AdapterNames flux3_adapter_names();

}  // namespace braid
