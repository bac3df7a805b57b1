// Initial latents from a safetensors file.
#pragma once

#include <filesystem>
#include <optional>

#include "braid/braid.h"

namespace braid {

// The tensor `latents`, else `latents_initial`, else the only one. Throws InputError if there is no
// such tensor or it does not hold floating-point numbers. `picture`: the only one to take of
// several, from 1 on; throws InputError if there are fewer.
Latents read_latents(const std::filesystem::path& path, std::optional<int> picture = {});

}  // namespace braid
