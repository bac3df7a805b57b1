// Spellings of autoencoder checkpoints.
#pragma once

#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Read off the checkpoint: diffusers' names, older or newer, or Black Forest Labs'.
Names vae_names(const Checkpoint& checkpoint);

}  // namespace braid
