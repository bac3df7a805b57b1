// A step's collectives, from a model's sizes alone: equal to what groups count in a run.
#pragma once

#include "comm/axis_traffic.h"
#include "pipeline/planner/grid.h"
#include "pipeline/planner/job.h"
#include "pipeline/planner/stages.h"

namespace braid {

// What a rank holding the blocks of `stage` sends to the others in one step. With hidden width C, s
// tokens on the rank and e bytes per element, each evaluation of the transformer takes
//   tp       all_reduces of s C e, as many as each block's cost says; with shared modulation one
//            all_gather per adaLN layer, unless all steps' outputs are computed before the first
//   ulysses  2 all_to_alls per block: q, k and v of the rank's tokens out, attended tokens back
//   ring     R - 1 shifts of keys and values per block, or one all_gather of the rank's own
//   context  1 all_gather of the velocity of the rank's image tokens
// and each step
//   cfg      1 all_gather of the velocities
//   world    nothing, though it is listed
// With pipeline parallelism over P stages, a step's pictures and branches are n items that follow
// each other, and collectives inside blocks count once per item:
//   pp       n + P - 1 shifts: every item, its tokens and what else a part hands on; 1 broadcast of
//            the velocities
// ControlNets, each following a picture, add the collectives inside their blocks: one evaluation
// for all branches, of pictures that the stages share out. For their residuals they add
//   pp       2 broadcasts per stage with pictures, one for each kind of block
// Blocks that run once per picture, before the first step, are not counted. The job is surveyed.
TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank,
                              const Stage& stage);

// A whole transformer, without pipeline parallelism.
TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank);

// The same, with what is sent along tp by kind of collective.
struct StepTraffic {
  Traffic reduces, gathers;  // along tp
  TrafficByAxis others;
};
StepTraffic traffic_by_kind(const PlanJob& job, const Degrees& grid, int rank);

// How often a rank's pictures pass through its blocks per evaluation: all at once, or one by one
// through the stages of pipeline parallelism.
std::int64_t items_of_batch(const PlanJob& job, const Degrees& grid);

}  // namespace braid
