// Spellings of autoencoder checkpoints.
#pragma once

#include "models/vae/config.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Read off the checkpoint: diffusers' names, older or newer, Black Forest Labs' or, of
// Qwen-Image-2.1's, Wan's.
Names vae_names(const Checkpoint& checkpoint);

// Takes over the widths of the decoder's levels from a checkpoint whose decoder has others than the
// config says, such as FLUX.2's small one.
void adopt_decoder_widths(VaeConfig& config, const Checkpoint& checkpoint);

}  // namespace braid
