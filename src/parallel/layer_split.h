// Layer split, also called pipeline parallelism (Huang et al., 2019): each stage keeps a run of the
// blocks, and pictures follow each other through the stages.
#pragma once

#include "comm/mesh.h"
#include "parallel/regions.h"

namespace braid {

// `part` is this stage's part of the denoiser. All stages are given the same inputs, of one picture
// or more; each picture of each branch of guidance is an item of the pipe. At tick t stage s works
// on item t - s, so that with several items all stages work at once. Every stage gets every
// velocity, with the bits that one rank makes of the same items.
PredictAll layer_split(Group stages, PredictPart part);

// What a stage has for its blocks.
struct StageMemory {
  bool is_host;  // the memory of the computer, which all stages on CPUs share
  std::int64_t free_bytes;
};

// The run of blocks of this rank's stage. On CPUs every stage gets as many blocks; with devices of
// their own memory the bytes of the runs are in proportion to what is free, counting for a stage
// the fullest of its ranks. `block_sizes` are in any unit; `measure` is called when all ranks have
// come. Collective over the world. Throws InputError when there are more stages than blocks.
Share blocks_of_rank(const Mesh& mesh, const std::vector<std::int64_t>& block_sizes,
                     const std::function<StageMemory()>& measure);

// Consecutive runs with sums in proportion to `capacities`, none empty.
std::vector<Share> runs_in_proportion(const std::vector<std::int64_t>& sizes,
                                      const std::vector<double>& capacities);

}  // namespace braid
