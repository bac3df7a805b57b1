// What a run sends and reads beside what plans say of it.
#pragma once

#include <gtest/gtest.h>

#include "pipeline/engine/run_facts.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"

namespace braid {

inline Stage stage_of_rank(const PlanJob& job, const Degrees& degrees, int rank) {
  return stage_of(job.shape(),
                  share_of(job.shape().num_blocks(), place_of(degrees, rank).pp, degrees.pp));
}

inline void expect_predicted_traffic(const PlanJob& job, const Degrees& degrees,
                                     const RunFacts& facts) {
  const auto want = predict_traffic(job, degrees, 0, stage_of_rank(job, degrees, 0));
  EXPECT_EQ(text_of_traffic(facts.step_traffic), text_of_traffic(want));
}

inline std::int64_t numbers_of_part(const PlanJob& job, Part::Role role) {
  std::int64_t sum = 0;
  for (const auto& tensor : job.tensors->of(role).tensors) sum += numbers_of(tensor, 1);
  return sum;
}

// The bytes of the tensors that the last of so many ranks of tensor parallelism reads of a part.
inline std::int64_t stored_bytes(const PlanJob& job, const ModelFiles& files, const Part& part,
                                 const Stage& stage, int ranks) {
  const auto& tensors = job.tensors->of(part);
  std::int64_t numbers = 0;
  for (const auto& t : tensors.tensors)
    if (stage.holds(t, tensors.num_blocks())) numbers += numbers_of(t, ranks, ranks - 1);
  return numbers * std::int64_t(c10::elementSize(files.open(part.folder).dtype()));
}

// What the last rank reads of denoiser and decoder.
inline std::int64_t stored_bytes_of_last_rank(const PlanJob& job, const ModelFiles& files,
                                              const Degrees& degrees) {
  const auto& family = *job.family;
  const auto stage = stage_of_rank(job, degrees, degrees.product() - 1);
  return stored_bytes(job, files, family.part(Part::Role::kDenoiser), stage, degrees.tp) +
         stored_bytes(job, files, family.part(Part::Role::kDecoder), {.is_first = true}, 1);
}

}  // namespace braid
