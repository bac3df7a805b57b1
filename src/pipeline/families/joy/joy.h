// The JoyAI-Image-Edit family (JD, 2025): a Qwen3-VL reads the prompt and looks at the pictures to
// edit, a joint transformer of double blocks draws, an AutoencoderKLWan decodes. Edit looks at one
// picture of the size it draws, Edit-Plus at several in sizes of their own.
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
  int max_plain_tokens = 2048;           // of an Edit prompt without a picture
  std::filesystem::path processor = {};  // empty: as published
  // The folder, in the model's, of the tokenizer that reads chats with pictures. Edit reads others
  // with that in "tokenizer".
  std::string tokenizer = "tokenizer";
};

// A family of any sizes.
std::shared_ptr<const Family> make_joy_family(const JoyConfigs& configs,
                                              const ScheduleConfig& schedule,
                                              const RequestDefaults& defaults);

}  // namespace braid
