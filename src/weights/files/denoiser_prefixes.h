// What programs write before the names of a denoiser's tensors, in checkpoints and in adapters.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace braid {

// The longer comes first where one begins with another.
inline constexpr auto kOuterPrefixes = std::to_array<std::string_view>(
    {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "module.",
     "model.diffusion_model.", "diffusion_model.", "transformer.", "model.", "unet.", "dit.",
     "net."});

// Segments that torch.compile, FSDP, checkpointing and DDP insert for their wrappers. No layer is
// named so.
inline constexpr auto kModuleWrappers = std::span(kOuterPrefixes).first<4>();
// Names of the member that holds the denoiser, in whatever was saved.
inline constexpr auto kDenoiserMembers = std::span(kOuterPrefixes).subspan<4>();

// How ComfyUI's files begin a denoiser's names. They leave it out if they hold nothing else.
inline constexpr auto kComfyPrefixes =
    std::to_array<const char*>({"model.diffusion_model.", "diffusion_model.", ""});

// The name without the outermost prefix; the same name if it has none.
constexpr std::string_view without_outer_prefix(std::string_view name) {
  for (const auto prefix : kOuterPrefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

}  // namespace braid
