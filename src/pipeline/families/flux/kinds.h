// The models of FLUX.1's shape, and the pictures that each looks at.
#pragma once

#include "pipeline/families/description.h"

namespace braid {

enum class FluxKind {
  kPlain,
  kKontext,  // looks at a reference
  kFill,     // draws what a mask leaves open
  kControl,  // follows edges (Canny) or depths
};

const char* flux_pipeline(FluxKind kind);  // the class in model_index.json
PicturesTaken flux_pictures(FluxKind kind, const VaeConfig& vae);
// Channels beside those of a token of latents.
std::int64_t flux_beside_channels(FluxKind kind, const VaeConfig& vae);

}  // namespace braid
