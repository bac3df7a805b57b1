// The spellings of FLUX checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Our names are Black Forest Labs', with fused projections; diffusers' are mapped onto them.
// The spelling and its prefix are read off the checkpoint.
Names flux_names(const Checkpoint& checkpoint);

Names flux_names_of_diffusers();
Names flux_names_in_one_file();  // Black Forest Labs'

// Covers the names of Black Forest Labs, XLabs' trainer, DiffSynth, OneTrainer and diffusers, whose
// projections may be fused.
AdapterNames flux_adapter_names();

}  // namespace braid
