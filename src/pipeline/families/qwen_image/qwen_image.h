// The Qwen-Image family (Qwen Team, 2025): a Qwen2.5-VL reads the prompt, a joint transformer of
// double blocks draws, an AutoencoderKLQwenImage decodes. Edit and Edit-Plus look at pictures to
// edit, both with the text encoder and beside the noise: Edit at one, Edit-Plus at several. Layered
// takes a picture apart into layers with alpha, which it draws beside the whole picture.
#pragma once

#include "models/qwen25_vl/config.h"
#include "models/qwen_image/controlnet.h"
#include "pipeline/families/family.h"

namespace braid {

enum class QwenImageKind { kPlain, kEdit, kEditPlus, kLayered };

// Whether its text encoder looks at the references, too.
constexpr bool reads_pictures(QwenImageKind kind) {
  return kind == QwenImageKind::kEdit || kind == QwenImageKind::kEditPlus;
}

FamilyEntry qwen_image_family(QwenImageKind kind);

struct QwenImageConfigs {
  QwenImageKind kind = QwenImageKind::kPlain;
  QwenImageConfig qwen = {};
  Qwen25VlConfig text = {};
  VaeConfig vae = wan_vae_config();
  std::vector<QwenImageControlNetConfig> controlnets = {};
  std::filesystem::path processor = {};  // of a kind that reads pictures; empty: as published
  std::string tokenizer = "tokenizer";   // the folder of the one that reads prompts
};

// A family of any sizes.
std::shared_ptr<const Family> make_qwen_image_family(const QwenImageConfigs& configs,
                                                     const ScheduleConfig& schedule,
                                                     const RequestDefaults& defaults);

}  // namespace braid
