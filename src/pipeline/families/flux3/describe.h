// Everything known of a FLUX.3 model from its config files.
#pragma once

#include "pipeline/families/flux3/flux3.h"

namespace braid {

Description describe_flux3(const Flux3Configs& configs, const ScheduleConfig& schedule,
                           const RequestDefaults& defaults);

// Request defaults of the published models, and the schedule that the pipelines have without a
// scheduler of the directory's.
RequestDefaults flux3_defaults(const Flux3Config& config);
constexpr ScheduleConfig kFlux3Schedule = {.shift = 6.93};

}  // namespace braid
