// Everything known of a FLUX.1 model from its config files.
#pragma once

#include "pipeline/families/flux/flux.h"

namespace braid {

// The layer that takes the latents: Control LoRAs widen it for a picture's latents.
constexpr const char* kFluxInput = "img_in";

Description describe_flux(const FluxConfigs& configs, const ScheduleConfig& schedule,
                          const RequestDefaults& defaults);

// Defaults as published for FLUX.1-dev (guidance embedder), its kinds, and FLUX.1-schnell (none).
RequestDefaults flux_defaults(const FluxConfig& config, FluxKind kind);

}  // namespace braid
