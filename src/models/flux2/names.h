// The spellings of FLUX.2 checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Our names are Black Forest Labs', with fused projections; diffusers' are mapped onto them.
// The spelling and its prefix are read off the checkpoint.
Names flux2_names(const Checkpoint& checkpoint);

Names flux2_names_of_diffusers();
Names flux2_names_in_one_file();  // Black Forest Labs'

// Covers diffusers' names, a trainer's truncated form of these, and Black Forest Labs'.
AdapterNames flux2_adapter_names();

}  // namespace braid
