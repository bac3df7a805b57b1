// Pipeline parallelism (Huang et al., 2019): each stage keeps a run of blocks, and pictures follow
// each other through the stages.
#pragma once

#include "comm/mesh.h"
#include "parallel/regions.h"

namespace braid {

// `part` is this stage's part of the denoiser. All stages get the same inputs, of one or more
// pictures; each picture of each guidance branch is an item. At tick t, stage s works on item t -
// s, so with several items all stages are busy. Every stage gets every velocity, bit-identical to
// one rank computing the same items.
PredictAll pipeline_parallel(Group stages, PredictPart part);

// Memory available for a stage's blocks.
struct StageMemory {
  bool is_host;  // host memory, shared by all stages on CPUs
  std::int64_t free_bytes;
};

// The memory of a stage that has another rank: its fullest one counts, and a host among them.
StageMemory joined_memory(const StageMemory& stage, const StageMemory& rank);

// The run of blocks of each stage. If all stages are on CPUs or do not take alike, their shares
// count blocks. Otherwise the bytes of the runs are proportional to free memory. `block_sizes` are
// in any unit.
std::vector<Share> runs_of_stages(const std::vector<std::int64_t>& block_sizes,
                                  const Shares& stages, const std::vector<StageMemory>& memory);

// The run of this rank's stage. `measure` is called once all ranks have arrived. Collective over
// the world. Throws InputError if there are more stages than blocks.
Share blocks_of_rank(const Mesh& mesh, const std::vector<std::int64_t>& block_sizes,
                     const std::function<StageMemory()>& measure);

// Consecutive runs whose sums are proportional to `capacities`, none empty.
std::vector<Share> runs_in_proportion(const std::vector<std::int64_t>& sizes,
                                      const std::vector<double>& capacities);

}  // namespace braid
