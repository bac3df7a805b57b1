// The spellings of Z-Image checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Our names are those of single files, except that the MLP's gate and value are one layer and a
// norm is named as one. diffusers' names are mapped onto them. The spelling and its prefix are read
// off the checkpoint.
Names zimage_names(const Checkpoint& checkpoint);

Names zimage_names_of_diffusers();
Names zimage_names_in_one_file();

// Covers both spellings, and diffusers' with fused projections or without the index of to_out.
AdapterNames zimage_adapter_names();

}  // namespace braid
