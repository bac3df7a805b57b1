// Everything known of a Z-Image model from its config files.
#pragma once

#include "pipeline/families/zimage/zimage.h"

namespace braid {

// The timestep of noise for ZImagePipeline, whatever num_train_timesteps says.
constexpr float kZImageTimestepScale = 1000;

Description describe_zimage(const ZImageConfigs& configs, const ScheduleConfig& schedule,
                            const RequestDefaults& defaults);

// Request defaults of the published model with such a schedule.
RequestDefaults zimage_defaults(const ScheduleConfig& schedule);

}  // namespace braid
