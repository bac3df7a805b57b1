// Initial latents from a safetensors file.
#pragma once

#include <filesystem>

#include "braid/braid.h"

namespace braid {

// The tensor `latents`, else `latents_initial`, else the only one. Throws InputError if there is no
// such tensor or it does not hold floating-point numbers.
Latents read_latents(const std::filesystem::path& path);

}  // namespace braid
