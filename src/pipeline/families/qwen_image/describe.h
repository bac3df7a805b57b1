// Everything known of a Qwen-Image model from its config files.
#pragma once

#include "pipeline/families/qwen_image/qwen_image.h"

namespace braid {

constexpr int kReferenceMultiple = 32;  // pixels, of references' sides

// The class of diffusers.
const char* qwen_image_pipeline(QwenImageKind kind);

Description describe_qwen_image(const QwenImageConfigs& configs, const ScheduleConfig& schedule,
                                const RequestDefaults& defaults);

// Request defaults of the pipelines.
RequestDefaults qwen_image_defaults(QwenImageKind kind);

}  // namespace braid
