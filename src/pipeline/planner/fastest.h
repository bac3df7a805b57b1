// `--layout auto`: the layout that the planner ranks first.
#pragma once

#include "pipeline/planner/planner.h"

namespace braid {

// For a request on these devices of this machine ("cpu" or "cuda:1"), one per rank. A device named
// several times is shared, but "cuda" is each rank's own. GPUs are assumed to differ in free memory
// only. Reads the model's configs and headers. Throws InputError with the most frequent reason if
// nothing fits.
PlannedLayout fastest_layout(const PipelineOptions& options, const Request& request,
                             const std::vector<std::string>& devices);

}  // namespace braid
