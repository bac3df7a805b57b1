// Folder names of ComfyUI's models folder: the current ones, then the older ones.
#pragma once

#include <vector>

namespace braid::comfy {

using Folders = std::vector<const char*>;
inline const Folders kModels = {"diffusion_models", "unet", "checkpoints"};
inline const Folders kTextEncoders = {"text_encoders", "clip"};
inline const Folders kAutoencoders = {"vae"};
inline const Folders kAdapters = {"loras"};

}  // namespace braid::comfy
