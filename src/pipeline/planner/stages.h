// Which run of the transformer's blocks each stage of a layer split holds.
#pragma once

#include "pipeline/planner/weights.h"

namespace braid {

struct Stage {
  std::int64_t num_double = 0, num_single = 0;
  bool is_first = false, is_last = false;  // these have the embedders, and the last layer
  std::int64_t first_block = 0;
};

Stage whole_transformer(const FluxConfig& config);

// The blocks of a run.
Stage stage_of(const FluxConfig& config, const Share& run);

Parameters parameters_of(const Stage& stage, const FluxParameters& parameters);

}  // namespace braid
