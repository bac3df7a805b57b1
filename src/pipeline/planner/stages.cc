#include "pipeline/planner/stages.h"

#include <algorithm>

namespace braid {
namespace {

// What follows the last block is, too.
bool is_in_a_step(const std::vector<BlockCost>& blocks, std::int64_t block) {
  for (const auto& kind : blocks) {
    if (block < kind.count) return kind.use == BlockUse::kInEveryStep;
    block -= kind.count;
  }
  return true;
}

}  // namespace

bool Stage::holds(const PlannedTensor& tensor, std::int64_t blocks) const {
  if (tensor.block < 0) return is_first;
  if (tensor.block >= blocks) return is_last;
  return tensor.block >= first_block && tensor.block < first_block + num_blocks;
}

Stage stage_of(const DenoiserShape& shape, const Share& run) {
  return {.first_block = run.begin,
          .num_blocks = run.count,
          .is_first = run.begin == 0,
          .is_last = run.begin + run.count == shape.num_blocks()};
}

Stage whole_transformer(const DenoiserShape& shape) {
  return stage_of(shape, {.begin = 0, .count = shape.num_blocks()});
}

std::int64_t num_modulations(const std::vector<BlockCost>& blocks, const PartTensors& part,
                             const Stage& stage) {
  std::int64_t columns = 0;
  for (const auto& t : part.tensors)
    if (t.use == PageUse::kOnce && t.columns > 1 && t.block >= 0 &&
        stage.holds(t, part.num_blocks()) && is_in_a_step(blocks, t.block))
      columns += t.rows;
  std::int64_t first = 0;
  for (const auto& kind : blocks) {
    const auto end = std::min(first + kind.count, stage.first_block + stage.num_blocks);
    const auto held = end - std::max(first, stage.first_block);
    columns += std::max<std::int64_t>(0, held) * kind.more_modulations;
    first += kind.count;
  }
  return columns;
}

}  // namespace braid
