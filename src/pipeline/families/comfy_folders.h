// Where ComfyUI keeps what, in its folder of models: its own names, then those that it had before.
#pragma once

#include <vector>

namespace braid::comfy {

using Folders = std::vector<const char*>;
inline const Folders kModels = {"diffusion_models", "unet", "checkpoints"};
inline const Folders kTextEncoders = {"text_encoders", "clip"};
inline const Folders kAutoencoders = {"vae"};
inline const Folders kAdapters = {"loras"};

}  // namespace braid::comfy
