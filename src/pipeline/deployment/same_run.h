// Ranks that are processes have command lines and files of their own. What a picture depends on is
// compared before the first of them computes with something else than the others.
#pragma once

#include "comm/group.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/request/settings.h"

namespace braid {

// Compares which command the ranks run, as soon as they have met: those of another one would not
// make the same calls. Collective, and as below.
void check_same_command(const Group& world, const Deployment& deployment);

// Compares how the model runs, and samples of its weights. Collective; does nothing for ranks that
// are threads. Throws InputError naming the first difference.
void check_same_model(const Group& world, const Deployment& deployment);

// The same for what is drawn, with these adapters.
void check_same_request(const Group& world, const Deployment& deployment, const Request& request,
                        const Settings& settings, const std::vector<AppliedAdapter>& adapters);

}  // namespace braid
