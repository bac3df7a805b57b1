// The FLUX.3 family (Black Forest Labs, 2026): eight layers of a Qwen3-VL embed the prompt; a
// transformer whose text, image and references first pass through blocks of their own; FLUX.2's
// autoencoder. Klein base uses true guidance; klein is a flow map, distilled to few steps without.
#pragma once

#include "models/causal_lm/config.h"
#include "models/flux3/config.h"
#include "pipeline/families/family.h"

namespace braid {

FamilyEntry flux3_family();

struct Flux3Configs {
  Flux3Config flux = {};
  CausalLmConfig text = {.theta = 5e6};  // of the Qwen3-VL, which sees no pictures here
  VaeConfig vae = flux2_vae_config();
};

// A family of any sizes.
std::shared_ptr<const Family> make_flux3_family(const Flux3Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults);

}  // namespace braid
