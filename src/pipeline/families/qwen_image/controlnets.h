// The ControlNets of a Qwen-Image model.
#pragma once

#include "models/qwen_image/config.h"
#include "pipeline/families/family.h"

namespace braid {

// Reads the ControlNets named by the files. Throws InputError unless each fits the transformer.
std::vector<QwenImageConfig> read_qwen_image_controlnets(const ModelFiles& files,
                                                         const QwenImageConfig& transformer);

std::vector<Part> qwen_image_controlnet_parts(const std::vector<QwenImageConfig>& nets);

// How many residuals are added, one after each run of blocks of the same length.
std::int64_t num_residuals(const std::vector<QwenImageConfig>& nets);

// Loads the nets; `parts` are those of qwen_image_controlnet_parts(), wherever they are stored.
Controls load_qwen_image_controlnets(const std::vector<QwenImageConfig>& nets,
                                     const std::vector<const Part*>& parts,
                                     const WeightsOf& weights_of, const Attend& attend);

}  // namespace braid
