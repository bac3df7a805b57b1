// What to expect of a deployment on this machine: whether a model fits into its free memory, and
// with which flags; whether a split is worth it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/deployment/deployment.h"

namespace braid {

// The free memory of this machine, all of which a model may take.
Budget budget_here(const std::string& device);

struct PlanHere {
  bool fits = false;
  std::string sentence = {};  // "takes 5.9 GB of the 8.0 GB that cuda has free, by ..."
};

// Says whether a picture of the model's defaults fits its device within the budget, and with which
// flags, or what is missing.
PlanHere plan_here(Deployment deployment, const Budget& budget);

// If the request is predicted to need more than `free` bytes of this machine's memory: a sentence
// that says so and names --memory. Nothing for a GPU and for budgets and files that were chosen.
std::optional<std::string> shortage_here(const Deployment& deployment, const Request& request,
                                         std::int64_t free);

// If the layout that was asked for is predicted to take longer for the request than one of its
// cards alone: a sentence that says so. Nothing for layouts that were chosen.
std::optional<std::string> slower_split_here(const Deployment& deployment, const Request& request,
                                             const Host& host = this_host());

// If the request has fewer pictures than data-parallel ranks: a sentence on those that only wait.
std::optional<std::string> idle_ranks_here(const Deployment& deployment, const Request& request);

// If the transformer's weights are in codes that one of the devices must widen before each product:
// a sentence that says so.
std::optional<std::string> slower_codes_here(const Deployment& deployment, const Request& request,
                                             const Host& host = this_host());

}  // namespace braid
