// Folder names of models folders: ComfyUI's current ones, then its older ones, then those of A1111,
// Forge and SwarmUI.
#pragma once

#include <vector>

namespace braid::comfy {

using Folders = std::vector<const char*>;
inline const Folders kModels = {"diffusion_models", "unet", "checkpoints", "Stable-diffusion",
                                "Stable-Diffusion"};
inline const Folders kTextEncoders = {"text_encoders", "clip", "text_encoder"};
inline const Folders kAutoencoders = {"vae", "VAE"};
inline const Folders kAdapters = {"loras", "Lora", "LyCORIS"};
inline const Folders kControlNets = {"controlnet", "ControlNet"};
inline const Folders kDirectories = {"diffusers"};  // in the diffusers layout

}  // namespace braid::comfy
