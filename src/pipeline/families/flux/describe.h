// What is known of a FLUX.1 model from its config files.
#pragma once

#include "pipeline/families/flux/flux.h"

namespace braid {

// The layer that sees latents: Control LoRAs add those of a picture.
constexpr const char* kFluxInput = "img_in";

Description describe_flux(const FluxConfigs& configs, const ScheduleConfig& schedule,
                          const RequestDefaults& defaults);

// What FLUX.1-dev (has a guidance embedder), its kinds and FLUX.1-schnell (has none) publish.
RequestDefaults flux_defaults(const FluxConfig& config, FluxKind kind);

}  // namespace braid
