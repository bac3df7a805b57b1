// FLUX.1 Redux: pictures that are looked at as text behind the prompt.
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

// That of the files, if they name one. Throws InputError unless it fits the transformer.
std::optional<FluxReduxConfig> read_flux_redux(const ModelFiles& files,
                                               const FluxConfig& transformer);

std::vector<Part> flux_redux_parts(const FluxReduxConfig& config);
// Says that references are looked at so.
void add_flux_redux(PicturesTaken& taken, const FluxReduxConfig& config);

// `parts` are those of flux_redux_parts().
EmbedPicture load_flux_redux(const FluxReduxConfig& config, const std::vector<const Part*>& parts,
                             const WeightsOf& weights_of);

// As Family::behind_prompt says.
Condition redux_behind_prompt(const Condition& embedded, const Prompt& prompt,
                              const EmbeddedPictures& pictures);

}  // namespace braid
