// The FLUX.1 family: CLIP and T5, one joint transformer of double and single blocks, guidance as an
// input of the distilled models, an AutoencoderKL.
#pragma once

#include "models/clip/model.h"
#include "models/flux/controlnet.h"
#include "models/t5/model.h"
#include "pipeline/families/family.h"
#include "pipeline/families/flux/kinds.h"
#include "pipeline/families/flux/redux.h"

namespace braid {

FamilyEntry flux_family(FluxKind kind = FluxKind::kPlain);

struct FluxConfigs {
  FluxKind kind = FluxKind::kPlain;
  FluxConfig flux = {};
  ClipConfig clip = {};
  T5Config t5 = {};
  VaeConfig vae = {};
  std::vector<FluxControlNetConfig> controlnets = {};
  std::optional<FluxReduxConfig> redux = {};
  std::int64_t stored_channels = 0;  // input width as stored, if an adapter widens it; else 0
};

// A family of any sizes.
std::shared_ptr<const Family> make_flux_family(const FluxConfigs& configs,
                                               const ScheduleConfig& schedule = {},
                                               const RequestDefaults& defaults = {});

}  // namespace braid
