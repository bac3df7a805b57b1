// The spellings of Qwen-Image checkpoints.
#pragma once

#include "weights/adapters/adapter_names.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// A tensor by which ComfyUI's files mark a model whose references have timestep 0; its value means
// nothing.
inline constexpr const char* kZeroReferenceTime = "__index_timestep_zero__";

// Our names are those of FLUX.1's double blocks, with fused projections; diffusers', which all
// known files have, are mapped onto them. The prefix is read off the checkpoint.
Names qwen_image_names(const Checkpoint& checkpoint);

Names qwen_image_names_of_diffusers();

// Covers the names of diffusers and of trainers that drop an index.
AdapterNames qwen_image_adapter_names();

}  // namespace braid
