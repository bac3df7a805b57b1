// Every layout of some devices: whether it fits, what it holds and moves, how long a step takes.
#pragma once

#include "pipeline/planner/memory.h"
#include "pipeline/planner/time.h"
#include "pipeline/planner/traffic.h"

namespace braid {

// Why a layout is not for this job.
enum class Obstacle { kNone, kHeads, kTokens, kBranches, kPictures, kBlocks, kMemory };

struct PlannedLayout {
  Degrees grid;
  Obstacle obstacle = Obstacle::kNone;
  std::string reason = {};  // one sentence; empty without an obstacle

  // Of layouts that could run if memory sufficed:
  RankBytes first_rank = {}, largest_other = {};  // peaks; of one rank there is no other
  TrafficByAxis traffic = {};                     // of the first rank, which has most, in a step
  StepTime step = {};
  double seconds_per_picture = 0;  // all steps; with several at a time, their share

  bool fits() const { return obstacle == Obstacle::kNone; }
};

// The runs of blocks of a grid's stages. The job is surveyed.
std::vector<Stage> plan_stages(const PlanJob& job, const Machine& machine, const Degrees& grid);

// All grids of as many ranks as there are devices: those that fit, the fastest per picture first,
// then the others.
std::vector<PlannedLayout> plan_layouts(const PlanJob& job, const Machine& machine);

// One of them.
PlannedLayout plan_layout(const PlanJob& job, const Machine& machine, const Degrees& grid);

}  // namespace braid
