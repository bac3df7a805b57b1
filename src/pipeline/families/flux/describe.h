// Everything known of a FLUX.1 model from its config files.
#pragma once

#include "pipeline/families/flux/flux.h"

namespace braid {

// The layer that takes the latents: Control LoRAs widen it for a picture's latents.
constexpr const char* kFluxInput = "img_in";

Description describe_flux(const FluxConfigs& configs, const ScheduleConfig& schedule,
                          const RequestDefaults& defaults);

// Defaults as published for FLUX.1-dev (guidance embedder), its kinds, and FLUX.1-schnell (none).
// A fine-tune of dev may have lost its guidance, but not dev's schedule. The guidance counts where
// the transformer or a ControlNet has an input for it.
RequestDefaults flux_defaults(const FluxConfigs& configs, const ScheduleConfig& schedule);

}  // namespace braid
