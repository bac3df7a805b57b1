// How fast the ranks of a run multiply: shares by measured speed go by it.
#pragma once

#include <string>
#include <vector>

#include "pipeline/deployment/deployment.h"

namespace braid {

// FLOP/s by rank, of ranks that are threads on these devices of the host. Devices that are alike
// count as equally fast, and ranks divide one that they share; each of several on a CPU has threads
// of its own.
std::vector<double> speeds_of_threads(const Deployment& deployment,
                                      const std::vector<std::string>& names, const Host& host);

// The same for ranks that are processes with so many threads each: the first one of each kind
// measures, or finds what its host has kept. Collective; equal on all ranks.
std::vector<double> speeds_of_processes(const Group& world, const Deployment& deployment,
                                        int threads, const Host& host);

}  // namespace braid
