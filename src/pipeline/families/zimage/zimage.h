// The Z-Image family (Tongyi Lab, 2025): a Qwen3 language model embeds the prompt; one transformer
// refines text and picture separately, then together; true guidance unless the model is distilled;
// an AutoencoderKL.
#pragma once

#include "models/causal_lm/config.h"
#include "models/zimage/config.h"
#include "pipeline/families/family.h"

namespace braid {

FamilyEntry zimage_family();

struct ZImageConfigs {
  ZImageConfig zimage = {};
  CausalLmConfig text = {};
  VaeConfig vae = {};
};

// A family of any sizes.
std::shared_ptr<const Family> make_zimage_family(const ZImageConfigs& configs,
                                                 const ScheduleConfig& schedule = {},
                                                 const RequestDefaults& defaults = {});

}  // namespace braid
