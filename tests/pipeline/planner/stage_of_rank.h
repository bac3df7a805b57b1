// What a rank holds of a model, for tests that compare with what the planner says.
#pragma once

#include "comm/mesh.h"
#include "comm/shares.h"
#include "pipeline/planner/planner.h"

namespace braid {

inline Stage stage_of_rank(const PlanJob& job, const Degrees& degrees, int rank) {
  const auto layer = place_of(degrees, rank).pp;
  return stage_of(job.shape(), share_of(job.shape().num_blocks(), layer, degrees.of_pp()));
}

// The numbers of a part's tensors that each of `tp` ranks of a stage reads.
inline std::int64_t numbers_in(const PlanJob& job, const Part& part, const Stage& stage, int tp) {
  const auto& tensors = job.tensors->of(part);
  std::int64_t numbers = 0;
  for (const auto& t : tensors.tensors)
    if (stage.holds(t, tensors.num_blocks())) numbers += numbers_of(t, tp);
  return numbers;
}

}  // namespace braid
