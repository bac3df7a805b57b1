// Everything known of a Qwen-Image-2.1 model from its config files.
#pragma once

#include "pipeline/families/qwen21/qwen21.h"

namespace braid {

Description describe_qwen21(const Qwen21Configs& configs, const ScheduleConfig& schedule,
                            const RequestDefaults& defaults);

// Request defaults of the pipeline, which is meant to be used without guidance.
RequestDefaults qwen21_defaults();

// A reference as the model sees it: about a megapixel at its aspect ratio, with sides in multiples
// of 32 pixels. Throws InputError for one that is too narrow for that.
Pixels fit_qwen21_reference(const Pixels& picture);

}  // namespace braid
