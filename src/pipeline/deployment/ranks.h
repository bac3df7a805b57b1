// The ranks of a deployment, connected.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/world.h"
#include "pipeline/deployment/deployment.h"

namespace braid {

// The world of a deployment's layout, checked. `warn` hears of a long wait for processes to start.
// Processes that have met compare what they are to run, and settle the shares that wait for it.
std::unique_ptr<World> make_world(Deployment& deployment,
                                  const std::function<void(const std::string&)>& warn = {});

}  // namespace braid
