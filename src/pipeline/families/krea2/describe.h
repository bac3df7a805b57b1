// Everything known of a Krea 2 model from its config files.
#pragma once

#include "pipeline/families/krea2/krea2.h"

namespace braid {

Description describe_krea2(const Krea2Configs& configs, const ScheduleConfig& schedule,
                           const RequestDefaults& defaults);

// Request defaults of the published models.
RequestDefaults krea2_defaults(Krea2Kind kind);

}  // namespace braid
