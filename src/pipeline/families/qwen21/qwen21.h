// The Qwen-Image-2.1 family (Qwen Team, 2026): a Qwen3-VL reads the prompt and looks at up to ten
// references; a transformer causal by blocks sees the references within the text, and draws behind
// both; an autoencoder of pictures with alpha. Turbo is the same with a grid of eight levels.
#pragma once

#include "models/qwen21/config.h"
#include "models/qwen3_vl/config.h"
#include "pipeline/families/family.h"

namespace braid {

FamilyEntry qwen21_family();

struct Qwen21Configs {
  Qwen21Config qwen = {};
  Qwen3VlConfig text = {};
  VaeConfig vae = qwen21_vae_config();
  std::filesystem::path processor = {};  // empty: as published
};

// A family of any sizes.
std::shared_ptr<const Family> make_qwen21_family(const Qwen21Configs& configs,
                                                 const ScheduleConfig& schedule,
                                                 const RequestDefaults& defaults);

}  // namespace braid
