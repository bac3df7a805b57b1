#include "pipeline/planner/costs/denoisers.h"

#include <algorithm>

#include "pipeline/sampling/solver.h"

namespace braid {

std::vector<ServedSteps> served_steps(const PlanJob& job) {
  std::vector<ServedSteps> served;
  for (const auto* const part : job.family->denoisers())
    served.push_back({.part = part, .evaluations = 0, .levels = 0});
  if (served.size() == 1) {  // whatever the schedule is
    served.front().evaluations = std::int64_t(job.evaluations()) * job.branches;
    served.front().levels = std::int64_t(job.num_levels()) * job.branches;
    return served;
  }
  const auto schedule =
      job.family->schedule(job.skipped_steps + job.steps, job.size(), StartsFrom::kNoise)
          .from(job.skipped_steps);
  int levels = 0;
  for (const auto& one : evaluations_of(job.sampler, schedule)) {
    const bool begins_level = one.row == levels;
    levels += begins_level ? 1 : 0;
    for (int branch = 0; branch < job.branches; ++branch) {
      auto& own = served[job.family->denoiser_for({.timestep = one.timestep, .branch = branch})];
      ++own.evaluations;
      own.levels += begins_level ? 1 : 0;
    }
  }
  return served;
}

DenoiserPages pages_of_denoisers(const PlanJob& job, const PartShare& share) {
  const auto& o = job.memory.offload;
  DenoiserPages pages;
  for (const auto* const part : job.family->denoisers()) {
    const auto own = job.figures->pages(
        job.tensors->of(*part), share,
        {.quantize = job.memory.quantize, .offload = o.transformer, .blocks = o.blocks});
    pages.groups.push_back({.first = pages.all.groups.size(), .count = own.groups.size()});
    pages.all.add(own);
  }
  return pages;
}

double per_evaluation(const PlanJob& job, const std::function<double(std::size_t)>& of_denoiser) {
  if (job.family->denoisers().size() == 1) return of_denoiser(0);
  const auto served = served_steps(job);
  double sum = 0, evaluations = 0;
  for (std::size_t i = 0; i < served.size(); ++i) {
    sum += double(served[i].evaluations) * of_denoiser(i);
    evaluations += double(served[i].evaluations);
  }
  return sum / std::max(1.0, evaluations);
}

const PartTensors& tensors_of_first_step(const PlanJob& job) {
  const auto& family = *job.family;
  const auto all = family.description().schedule.num_train_timesteps;
  const auto number = family.denoiser_for({.timestep = static_cast<float>(all)});
  return job.tensors->of(*family.denoisers()[number]);
}

}  // namespace braid
