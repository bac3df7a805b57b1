// Noise levels that a request chooses: a list, or one of ComfyUI's schedules under the model's
// shift.
#pragma once

#include <functional>
#include <string>

#include "braid/sampling.h"
#include "pipeline/sampling/schedule.h"

namespace braid {

// What of a model's scheduler a request's sampling depends on.
struct SamplingLimits {
  Sampler usual = Sampler::kEuler;  // the scheduler's own
  bool is_inverted = false;         // its levels rise: only Euler and LCM take such steps
  int table_size = 1000;            // levels that the schedules choose from
  bool is_stretched = false;        // by a terminal shift, to end above 0
  bool is_respaced = false;         // between the ends of the shifted levels
};
SamplingLimits sampling_limits(const ScheduleConfig& config);

// Sampling with its sampler and at most one source of levels.
struct SettledSampling {
  Sampling sampling = {};
  int steps = 0;      // that make_grid() takes
  int num_steps = 0;  // that it gives: fewer if one of ComfyUI's schedules repeats levels
};
// `asked` wins over what `named` sets, the sampler apart from the levels. `steps` is the request's
// number, `usual_steps` the model's. Throws InputError naming the field; warns of steps that a list
// of levels overrules.
SettledSampling settle_sampling(const Sampling& asked, const Sampling& named,
                                std::optional<int> steps, int usual_steps,
                                const SamplingLimits& limits,
                                const std::function<void(const std::string&)>& warn);

// `otherwise` wherever `first` says nothing.
Sampling joined_sampling(const Sampling& first, const Sampling& otherwise);

// Whether the levels are those that the model's own schedule gives.
bool has_own_levels(const Sampling& sampling);

// A scheduler with this static shift instead of its own, and without a terminal one.
ScheduleConfig shifted_by(ScheduleConfig config, std::optional<double> shift);

// The levels of a settled sampling that has its own source of them. `start` has no levels.
Schedule make_grid(const Sampling& sampling, ScheduleConfig config, ScheduleStart start);

// ER-SDE divides by 1 - sigma: a first level of 1 becomes the one at a ten-thousandth of the way.
Schedule begun_below_one(Schedule schedule, const ScheduleConfig& config, double mu);

}  // namespace braid
