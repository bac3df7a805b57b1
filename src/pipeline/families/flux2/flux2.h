// The FLUX.2 family: a language model as the text encoder, a joint transformer of double and single
// blocks, an AutoencoderKLFlux2. Klein is Qwen3 and either distilled to need no guidance or (base)
// truly guided; dev is Mistral Small 3 and an embedded guidance. One klein attends to what it made
// of references once (diffusers' Flux2KleinKVPipeline).
#pragma once

#include "models/causal_lm/config.h"
#include "models/flux2/config.h"
#include "pipeline/families/family.h"

namespace braid {

FamilyEntry flux2_klein_family();
FamilyEntry flux2_kept_klein_family();
FamilyEntry flux2_dev_family();

enum class Flux2Kind { kKleinDistilled, kKleinBase, kKleinKept, kDev };

struct Flux2Configs {
  Flux2Kind kind = Flux2Kind::kDev;
  Flux2Config flux = {};
  CausalLmConfig text = {};
  VaeConfig vae = {};
};

// Of any sizes.
std::shared_ptr<const Family> make_flux2_family(const Flux2Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults);

}  // namespace braid
