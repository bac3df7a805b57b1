// What `--layout auto` means: the layout that the planner puts first.
#pragma once

#include "pipeline/planner/planner.h"

namespace braid {

// For a request on these devices of this machine, "cpu" or "cuda:1", a rank each; one that is named
// several times is shared, but "cuda" is each rank's own. GPUs are taken to be alike: what differs
// is their free memory. Reads the model's configs and headers. Throws InputError with the most
// frequent reason when nothing fits.
PlannedLayout fastest_layout(const PipelineOptions& options, const Request& request,
                             const std::vector<std::string>& devices);

}  // namespace braid
