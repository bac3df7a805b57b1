// The request of `braid plan`.
#pragma once

#include "app/flags/flags.h"
#include "pipeline/planner/planner.h"

namespace braid {

// Throw InputError naming the flag.
PlanJob job_of(const PlanFlags& flags);
Machine machine_of(const PlanFlags& flags);

// Other ways to keep the weights, with which a layout fits where none does otherwise: those that
// change least. For several devices their tensor parallel ranks share the text encoders.
struct PlanRemedy {
  PlanJob job;
  PlannedLayout layout;  // the fastest
};
std::vector<PlanRemedy> find_remedies(const PlanJob& job, const Machine& machine);

}  // namespace braid
