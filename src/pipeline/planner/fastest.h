// Fit::kAuto for a layout: the degrees that the planner ranks first.
#pragma once

#include "pipeline/host.h"
#include "pipeline/planner/planner.h"

namespace braid {

// Finds the fastest layout on these devices of the host ("cpu" or "cuda:1"), one per rank. A device
// named several times is shared, but "cuda" is each rank's own. The job is surveyed. Throws
// InputError with the most frequent reason if nothing fits.
PlannedLayout fastest_layout(const PlanJob& job, const std::vector<std::string>& devices,
                             const Host& host);

}  // namespace braid
