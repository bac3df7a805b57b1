// Parameters of each part of a FLUX.1 model, counted by hand: the reference for surveys and runs.
#pragma once

#include "models/vae/config.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/planner/stages.h"

namespace braid {

// Parameters split among tensor parallel ranks, and those each rank holds whole.
struct Parameters {
  std::int64_t shared = 0, whole = 0;

  std::int64_t of_rank(int tp) const { return shared / tp + whole; }
  Parameters& operator+=(const Parameters& more);
};
Parameters operator*(std::int64_t count, const Parameters& each);

// The parts of the transformer: embedders, one block of each kind, the last layer.
struct FluxParameters {
  Parameters embedders, double_block, single_block, last_layer;

  Parameters total(const FluxConfig& config) const;
};
FluxParameters count_flux(const FluxConfig& config, SharedModulation modulation);

Parameters count_t5(const T5Config& config);
Parameters count_t5_down(const T5Config& config);  // of these, those kept in float32 under float16
Parameters count_clip(const ClipConfig& config);
std::int64_t count_vae_decoder(const VaeConfig& config);

// Counts those of a run of blocks, including what precedes the model's first and follows its last
// block.
Parameters parameters_of(const Stage& stage, const FluxConfig& config, SharedModulation modulation);

}  // namespace braid
