// Where the weights of a rank's denoisers live, which share the slots of their pages, and how many
// evaluations each of them makes.
#pragma once

#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/job.h"

namespace braid {

// Of one picture.
struct ServedSteps {
  const Part* part;
  std::int64_t evaluations;  // of all branches
  std::int64_t levels;  // of each branch, added up: neighbours of a level are modulated together
};
std::vector<ServedSteps> served_steps(const PlanJob& job);  // by denoiser

struct DenoiserPages {
  PartPages all;
  std::vector<GroupRange> groups;  // of all, by denoiser
};
DenoiserPages pages_of_denoisers(const PlanJob& job, const PartShare& share);

// What a number of each denoiser is per evaluation of a picture.
double per_evaluation(const PlanJob& job, const std::function<double(std::size_t)>& of_denoiser);

// The tensors of the denoiser that serves the first step.
const PartTensors& tensors_of_first_step(const PlanJob& job);

}  // namespace braid
