// Machines on which only one thing takes time, of which tests count what a step has.
#pragma once

#include <map>
#include <string>

#include "pipeline/planner/planner.h"

namespace braid {

// A device that computes and reads instantly.
inline DeviceSpec instant() { return {"instant", 1e15, 1e30, 1e30, 1e30, 1, "none"}; }

inline Machine machine(int ranks, const LinkSpec& link, const DeviceSpec& device = instant()) {
  return {.devices = std::vector(std::size_t(ranks), device), .link = link, .network = link};
}

// One byte per second, or only a latency of one second per message.
inline const LinkSpec kBytes{"bytes", 1, 0}, kLatency{"latency", 1e30, 1};

inline std::map<std::string, double> communication(const PlanJob& job, const Machine& machine,
                                                   const Degrees& grid) {
  const auto step = plan_layout(job, machine, grid).step;
  return {step.communication.begin(), step.communication.end()};
}

}  // namespace braid
