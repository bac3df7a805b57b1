// FLUX.1 Redux: pictures embedded as text after the prompt.
#pragma once

#include "models/flux/config.h"
#include "models/flux/redux.h"
#include "models/siglip/model.h"
#include "pipeline/families/family.h"

namespace braid {

struct FluxReduxConfig {
  SiglipConfig siglip;
  ReduxConfig redux;
};

// The Redux named by the files, if any. Throws InputError unless it fits the transformer.
std::optional<FluxReduxConfig> read_flux_redux(const ModelFiles& files,
                                               const FluxConfig& transformer);

std::vector<Part> flux_redux_parts(const FluxReduxConfig& config);
// Records that references are embedded by Redux.
void add_flux_redux(PicturesTaken& taken, const FluxReduxConfig& config);

// `parts` are those of flux_redux_parts().
EmbedPicture load_flux_redux(const FluxReduxConfig& config, const std::vector<const Part*>& parts,
                             const WeightsOf& weights_of);

// See Family::behind_prompt.
Condition redux_behind_prompt(const Condition& embedded, const Prompt& prompt,
                              const EmbeddedPictures& pictures);

}  // namespace braid
