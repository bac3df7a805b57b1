// What tensors of the autoencoder are called in checkpoints.
#pragma once

#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Those of the checkpoint at hand: diffusers' names, older or newer, or Black Forest Labs'.
Names vae_names(const Checkpoint& checkpoint);

}  // namespace braid
