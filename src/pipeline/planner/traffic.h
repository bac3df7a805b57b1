// The collectives of a step, from a model's sizes alone: what groups count in a run.
#pragma once

#include "comm/axis_traffic.h"
#include "pipeline/planner/grid.h"
#include "pipeline/planner/job.h"
#include "pipeline/planner/stages.h"

namespace braid {

// What a rank that holds the blocks of `stage` gives the others in one step. With C the hidden
// width, s the rank's tokens, e the bytes of an element, for each evaluation of the transformer:
//   tp       all_reduces of s C e, as many as each block's cost says; with shared modulation an
//            all_gather for each adaLN layer, unless all steps' are made before the first
//   ulysses  2 all_to_alls a block: q, k and v of the rank's tokens there, attended tokens back
//   ring     R - 1 shifts of keys and values a block, or one all_gather of the rank's own
//   context  1 all_gather of the velocity of the rank's image tokens
// and once a step
//   cfg      1 all_gather of the velocities
//   world    1 broadcast of a byte: whether to stop
// With a layer split over P stages a step's pictures and branches are n items that follow each
// other, and collectives inside of blocks are counted for each item:
//   stages   n + P - 1 shifts: every item, its tokens and what else a part hands on; 1 broadcast of
//   the velocities
// ControlNets, each following a picture, add what is inside of blocks: one evaluation for all
// branches, of pictures that the stages share out; and of what nets make
//   stages   2 broadcasts of each stage's pictures, of the residuals of either kind of blocks
// The job is surveyed.
TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank,
                              const Stage& stage);

// Of the bytes along tp those of all_reduces, of a whole transformer.
std::int64_t reduced_bytes(const PlanJob& job, const Degrees& grid, int rank);

// Of a whole transformer, without layer split.
TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank);

// How often a rank's pictures pass through its blocks in an evaluation: at once, or one by one
// through the stages of a layer split.
std::int64_t items_of_batch(const PlanJob& job, const Degrees& grid);

StepShare share_of_step(const PlanJob& job, const Degrees& grid, int rank);

}  // namespace braid
