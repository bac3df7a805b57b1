// How fast the ranks of a run exchange tensors, measured when they are connected: a split over a
// slow link takes longer than one card would alone.
#pragma once

#include <optional>
#include <string>

#include "pipeline/deployment/deployment.h"

namespace braid {

// What an all_gather over the ranks reaches, in the terms of the planner's model of time. Moves
// little enough for tens of milliseconds on a usual link. Collective; equal on all ranks.
LinkSpec measure_link(const Group& world, at::Device device);

// The same for the ranks of a deployment, of which `ranks_on_these_cores` compute on this process's
// cores. Nothing where no picture is split, where ranks share a device, and where a rank's device
// is not known by its data sheet. Collective.
std::optional<LinkSpec> link_between_ranks(const Group& world, const Deployment& deployment,
                                           int ranks_on_these_cores, const Host& host);

// If the request is predicted to take longer over this link than on one of the devices alone: a
// sentence that says so, and whether any link would do better. Nothing where data sheets alone
// predict it: slower_split() says so before.
std::optional<std::string> slow_link_warning(const Deployment& deployment, const Request& request,
                                             const LinkSpec& link, const Host& host);

}  // namespace braid
