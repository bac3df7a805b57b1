// Where a model's files have codes of 8 bits and others are asked for.
#pragma once

#include <string>
#include <vector>

#include "pipeline/planner/job.h"

namespace braid {

// A sentence for each part whose files have matrices in another form than `asked` says. They stay
// in it: a second rounding would only add to the first one's error. The job is surveyed.
std::vector<std::string> kept_codes(const PlanJob& job, const Memory& asked);

}  // namespace braid
