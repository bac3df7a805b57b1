// Plans of FLUX.1-dev, for tests.
#pragma once

#include <string>

#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"

namespace braid {

inline PlanJob flux_dev() { return surveyed(named_job("flux1-dev")); }

// The job with adaLN layers on every rank.
inline PlanJob flux_dev_replicated() {
  auto job = named_job("flux1-dev");
  job.layout.modulation = SharedModulation::kNo;
  return surveyed(std::move(job));
}

inline Machine machine_of(const std::string& text) {
  auto devices = devices_named("--devices", text);
  const auto link = link_of(devices);
  return {.devices = std::move(devices),
          .link = link,
          .network = link_named("--network", "ethernet", LinkRoute::kDirect)};
}

inline PlannedLayout planned(const PlanJob& job, const std::string& devices, const Degrees& grid) {
  return plan_layout(job, machine_of(devices), grid);
}

}  // namespace braid
