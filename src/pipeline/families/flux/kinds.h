// The models with FLUX.1's shape, and the pictures that each looks at.
#pragma once

#include <string>
#include <vector>

#include "pipeline/families/description.h"

namespace braid {

enum class FluxKind {
  kPlain,
  kKontext,  // looks at a reference
  kFill,     // redraws what a mask leaves open
  kControl,  // follows edges (Canny) or depths
};

const char* flux_pipeline(FluxKind kind);  // the class in model_index.json
std::vector<std::string> flux_kin_pipelines(FluxKind kind);
PicturesTaken flux_pictures(FluxKind kind, const VaeConfig& vae);
// Channels per token beside those of the latents.
std::int64_t flux_extra_channels(FluxKind kind, const VaeConfig& vae);

}  // namespace braid
