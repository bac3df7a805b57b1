// How `braid plan` prints its results.
#pragma once

#include "app/flags/flags.h"
#include "pipeline/planner/fastest.h"
#include "pipeline/planner/planner.h"

namespace braid {

// Another way to keep the weights, with which a layout fits where none does otherwise.
struct PlanRemedy {
  PlanJob job;
  PlannedLayout layout;  // the fastest
};

struct PlanReport {
  const PlanFlags& flags;
  PlanJob job;
  Machine machine;
  std::vector<PlanRemedy> remedies = {};  // if nothing fits
  // Why weights in codes take longer than others, on the first device where they do.
  std::optional<std::string> slower_codes = {};
  std::optional<FasterAlone> faster_alone = {};
};

// `layouts` in the order of plan_layouts(). Without --all, at most twenty of those that fit, and
// how many are ruled out for which reason.
std::string plan_table(const PlanReport& report, const std::vector<PlannedLayout>& layouts);

// "memory", "heads", ...
const char* obstacle_name(Obstacle obstacle);

// The flags with which the job divides its work and keeps its weights; "" for the defaults.
std::string flags_of(const PlanJob& job);

// The name of a published model, or the last part of a path.
std::string model_of(const PlanReport& report);

}  // namespace braid
