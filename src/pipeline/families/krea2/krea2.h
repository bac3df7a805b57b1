// The Krea 2 family (Krea, 2026): twelve layers of a Qwen3-VL embed the prompt; one transformer
// fuses them once per picture, then denoises text and picture as one sequence; true guidance unless
// the model is distilled; Qwen-Image's autoencoder, which is Wan 2.1's.
#pragma once

#include "models/causal_lm/model.h"
#include "models/krea2/config.h"
#include "pipeline/families/family.h"

namespace braid {

FamilyEntry krea2_family();

// kTurbo is distilled to few steps: it has one shift for all sizes and needs no guidance.
enum class Krea2Kind { kRaw, kTurbo };

struct Krea2Configs {
  Krea2Kind kind = Krea2Kind::kRaw;
  Krea2Config krea = {};
  CausalLmConfig text = {.theta = 5e6};  // of the Qwen3-VL, which sees no pictures here
  HiddenStates taps = {2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35};
  VaeConfig vae = wan_vae_config();
  std::int64_t patch = 2;  // side of a token, in latents
};

// A family of any sizes.
std::shared_ptr<const Family> make_krea2_family(const Krea2Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults);

}  // namespace braid
