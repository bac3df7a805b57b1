// The range of the denoiser's blocks that each stage of pipeline parallelism holds.
#pragma once

#include "comm/group.h"
#include "nn/denoiser_shape.h"
#include "pipeline/planner/tensors.h"

namespace braid {

struct Stage {
  std::int64_t first_block = 0, num_blocks = 0;
  bool is_first = false, is_last = false;  // these hold the embedders and the last layer

  bool holds(const PlannedTensor& tensor, std::int64_t blocks) const;
};

Stage whole_transformer(const DenoiserShape& shape);

// The blocks of a run.
Stage stage_of(const DenoiserShape& shape, const Share& run);

// Modulations of the stage's blocks in a step: numbers per picture. Every rank holds all outputs of
// shared layers. Layers before the blocks embed the timestep.
std::int64_t num_modulations(const std::vector<BlockCost>& blocks, const PartTensors& part,
                             const Stage& stage);

// Calls visit(kind, count) for each kind of a step's blocks that the stage holds.
template <class Visit>
void for_each_kind(const DenoiserShape& shape, const Stage& stage, const Visit& visit) {
  std::int64_t first = 0;
  for (const auto& kind : shape.blocks) {
    const auto begin = std::max(first, stage.first_block);
    const auto end = std::min(first + kind.count, stage.first_block + stage.num_blocks);
    if (end > begin && kind.use == BlockUse::kInEveryStep) visit(kind, end - begin);
    first += kind.count;
  }
}

}  // namespace braid
