// Everything known of a JoyAI-Image-Edit model from its config files.
#pragma once

#include "pipeline/families/joy/joy.h"

namespace braid {

Description describe_joy(const JoyConfigs& configs, const ScheduleConfig& schedule,
                         const RequestDefaults& defaults);

const char* joy_pipeline(JoyKind kind);

// The defaults of the pipelines.
RequestDefaults joy_defaults(JoyKind kind);

}  // namespace braid
