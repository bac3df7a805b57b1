// The ControlNets of a FLUX.1 model.
#pragma once

#include "models/flux/controlnet.h"
#include "pipeline/families/family.h"

namespace braid {

// Reads the ControlNets named by the files. Throws InputError unless each fits the transformer and
// the autoencoder, and either all or none see pixels.
std::vector<FluxControlNetConfig> read_controlnets(const ModelFiles& files,
                                                   const FluxConfig& transformer,
                                                   const VaeConfig& vae);
bool see_pixels(const std::vector<FluxControlNetConfig>& configs);

std::vector<Part> controlnet_parts(const std::vector<FluxControlNetConfig>& configs);
std::vector<int> controlnet_modes(const std::vector<FluxControlNetConfig>& configs);

// Residuals of all nets together, for a transformer of `num_double` double blocks.
std::int64_t num_residuals(const std::vector<FluxControlNetConfig>& configs,
                           std::int64_t num_double);

// Loads the nets for a transformer of `num_double` double blocks. `parts` are those of
// controlnet_parts(), wherever they are stored.
Controls load_controlnets(const std::vector<FluxControlNetConfig>& configs, std::int64_t num_double,
                          const std::vector<const Part*>& parts, const WeightsOf& weights_of,
                          const Attend& attend);

// See Family::control.
ControlInput controlnet_input(const FluxControlNetConfig& config, const DenoiserInput& in,
                              std::optional<int> mode, double guidance);

}  // namespace braid
