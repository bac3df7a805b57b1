// Every layout of some devices: whether it fits, what it holds and moves, how long a step takes.
#pragma once

#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/costs/time.h"
#include "pipeline/planner/costs/traffic.h"

namespace braid {

// Why a layout does not suit this job.
enum class Obstacle { kNone, kHeads, kTokens, kBranches, kPictures, kBlocks, kMemory };

struct PlannedLayout {
  Degrees grid;
  Obstacle obstacle = Obstacle::kNone;
  std::string reason = {};  // one sentence; empty without an obstacle

  // Layouts that would run with enough memory also have these:
  RankBytes first_rank = {}, largest_other = {};  // by peak; a single rank has no other
  TrafficByAxis traffic = {};  // of the first rank, per step; where all take alike, it has most
  StepTime step = {};
  double seconds_per_picture = 0;  // all steps; of several drawn at a time, one's share

  bool fits() const { return obstacle == Obstacle::kNone; }
};

// The grid with the reason for which a run would refuse it, whatever the devices; else nothing.
std::optional<PlannedLayout> refused_layout(const PlanJob& job, const Degrees& grid);

// The block range of each stage of a grid. The job is surveyed.
std::vector<Stage> plan_stages(const PlanJob& job, const Machine& machine, const Degrees& grid);

// Shares in proportion to the ranks' speeds, in eighths of the fastest; ranks at one place of an
// axis count as their slowest. An axis whose shares come out alike has none.
AxisShares shares_by_speed(const Degrees& grid, const std::vector<double>& speed_of_ranks);
// The same by what the devices reach in large products, in finer steps where the slowest has less
// than two eighths.
AxisShares shares_by_speed(const Degrees& grid, const Machine& machine);

// Which shares are planned: those of the job's layout, or also those by speed where devices are not
// alike.
enum class Division { kAsAsked, kAlsoBySpeed };

// All grids with one rank per device, with the shares of the job's layout where there is one for
// each rank of their axis: those that fit, the fastest per picture first, then the rest.
std::vector<PlannedLayout> plan_layouts(const PlanJob& job, const Machine& machine,
                                        Division division = Division::kAsAsked);

// How many layouts each obstacle rules out, the most frequent first, with an example.
struct OutOf {
  int count;
  const PlannedLayout* example;
};
std::vector<OutOf> count_out(const std::vector<PlannedLayout>& layouts);

// A single grid.
PlannedLayout plan_layout(const PlanJob& job, const Machine& machine, const Degrees& grid);

}  // namespace braid
