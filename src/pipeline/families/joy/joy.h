// The JoyAI-Image-Edit family (JD, 2025): a Qwen3-VL reads the prompt and looks at what is to be
// edited, a joint transformer of double blocks draws, an AutoencoderKLWan makes pictures of it.
// Edit looks at one picture of the size it draws, Edit-Plus at several of sizes of their own.
#pragma once

#include "models/joy/config.h"
#include "models/qwen3_vl/config.h"
#include "pipeline/families/family.h"

namespace braid {

enum class JoyKind { kEdit, kPlus };

FamilyEntry joy_family(JoyKind kind);

struct JoyConfigs {
  JoyKind kind = JoyKind::kEdit;
  JoyConfig joy = {};
  Qwen3VlConfig text = {};
  VaeConfig vae = wan_vae_config();
  int max_plain_tokens = 2048;  // of a prompt to Edit without a picture
};

// Of any sizes.
std::shared_ptr<const Family> make_joy_family(const JoyConfigs& configs,
                                              const ScheduleConfig& schedule,
                                              const RequestDefaults& defaults);

}  // namespace braid
