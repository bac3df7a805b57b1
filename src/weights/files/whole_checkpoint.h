// Files that hold all parts of a model, like ComfyUI's checkpoints.
#pragma once

#include "weights/files/checkpoint.h"

namespace braid {

// The name prefix of each part's tensors: "model.diffusion_model.", "vae.",
// "text_encoders.t5xxl.transformer." and so on; for a file with one part, only "".
std::vector<std::string> parts_in(const Checkpoint& checkpoint);

// The denoiser of a file that holds all parts; otherwise the file itself, without a prefix that
// only some tools write and without a schedule that is stored beside it.
Checkpoint denoiser_in(const Checkpoint& checkpoint);

}  // namespace braid
