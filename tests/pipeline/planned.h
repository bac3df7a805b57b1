// Plans of FLUX.1-dev, for tests.
#pragma once

#include <string>

#include "pipeline/planner/planner.h"

namespace braid {

inline PlanJob flux_dev() { return *named_job("flux1-dev"); }

inline Machine machine_of(const std::string& text) {
  auto devices = devices_named("--devices", text);
  const auto link = link_of(devices);
  return {.devices = std::move(devices),
          .link = link,
          .network = link_named("--network", "ethernet", false)};
}

inline PlannedLayout planned(const PlanJob& job, const std::string& devices, const Grid& grid) {
  return plan_layout(job, machine_of(devices), grid);
}

}  // namespace braid
