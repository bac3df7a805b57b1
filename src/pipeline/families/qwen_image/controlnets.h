// The ControlNets of a Qwen-Image model.
#pragma once

#include "models/qwen_image/controlnet.h"
#include "pipeline/families/family.h"

namespace braid {

using QwenImageNets = std::vector<QwenImageControlNetConfig>;

// Reads the ControlNets named by the files. Throws InputError unless each fits the transformer, and
// the others.
QwenImageNets read_qwen_image_controlnets(const ModelFiles& files,
                                          const QwenImageConfig& transformer);

// Whether the only net follows the initial picture and its mask.
bool fills_in(const QwenImageNets& nets);

std::vector<Part> qwen_image_controlnet_parts(const QwenImageNets& nets);

// How many residuals are added, one after each run of blocks of the same length.
std::int64_t num_residuals(const QwenImageNets& nets);

// Loads the nets; `parts` are those of qwen_image_controlnet_parts(), wherever they are stored.
Controls load_qwen_image_controlnets(const QwenImageNets& nets,
                                     const std::vector<const Part*>& parts,
                                     const WeightsOf& weights_of, const Attend& attend);

}  // namespace braid
