// The FLUX.2 family: a language model as text encoder, a joint transformer of double and single
// blocks, an AutoencoderKLFlux2. Klein uses Qwen3 and is either distilled to need no guidance or
// (base) uses true guidance; dev uses Mistral Small 3 and embedded guidance. One klein computes the
// keys and values of references once (diffusers' Flux2KleinKVPipeline).
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

// A family of any sizes.
std::shared_ptr<const Family> make_flux2_family(const Flux2Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults);

}  // namespace braid
