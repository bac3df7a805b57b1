// The ControlNets that stand beside a FLUX.1 model.
#pragma once

#include "models/flux/controlnet.h"
#include "pipeline/families/family.h"

namespace braid {

// Those that the files name. Throws InputError unless each fits the transformer, and all see pixels
// or none does.
std::vector<FluxControlNetConfig> read_controlnets(const ModelFiles& files,
                                                   const FluxConfig& transformer);
bool see_pixels(const std::vector<FluxControlNetConfig>& configs);

std::vector<Part> controlnet_parts(const std::vector<FluxControlNetConfig>& configs);
std::vector<int> controlnet_modes(const std::vector<FluxControlNetConfig>& configs);

// That all nets together make, beside a transformer of `num_double` blocks of the first kind.
std::int64_t num_residuals(const std::vector<FluxControlNetConfig>& configs,
                           std::int64_t num_double);

// Beside a transformer of `num_double` blocks of the first kind. `parts` are those of
// controlnet_parts(), wherever else.
Controls load_controlnets(const std::vector<FluxControlNetConfig>& configs, std::int64_t num_double,
                          const std::vector<const Part*>& parts, const WeightsOf& weights_of,
                          const Attend& attend);

// As Family::control says.
ControlInput controlnet_input(const FluxControlNetConfig& config, const DenoiserInput& in,
                              std::optional<int> mode, double guidance);

}  // namespace braid
