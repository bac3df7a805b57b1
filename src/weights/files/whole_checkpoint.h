// Files that hold all parts of a model side by side, as ComfyUI's checkpoints do.
#pragma once

#include "weights/files/checkpoint.h"

namespace braid {

// What the names of each part's tensors begin with: "model.diffusion_model.", "vae.",
// "text_encoders.t5xxl.transformer." and so on; of a file of one part it is only "".
std::vector<std::string> parts_in(const Checkpoint& checkpoint);

// The file, or of one that holds all parts the denoiser.
Checkpoint denoiser_in(const Checkpoint& checkpoint);

}  // namespace braid
