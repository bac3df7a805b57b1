// The sizes of the published FLUX.2 models.
#pragma once

#include "pipeline/families/flux2/flux2.h"

namespace braid {

// "klein-4b", "klein-base-9b", "flux2-dev", ...
Flux2Configs published_flux2(const std::string& name);

}  // namespace braid
