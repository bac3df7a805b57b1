// The noise levels of FlowMatchEulerDiscrete, every bit as diffusers' pipelines compute them.
//
// A step goes from sigma_i to sigma_{i+1} (1 is noise, 0 the picture), in float32 from the latents
// x and the velocity v, both of the model's dtype:
//   plain:       x' = float32(x) + dt * v, dt = sigma_{i+1} - sigma_i
//   stochastic:  x' = (1 - sigma_{i+1}) * (float32(x) - sigma_i * v) + sigma_{i+1} * noise
// and back to v's dtype. The scalars are 0-dim float32 tensors in the reference, so the products
// with v are rounded to v's dtype before the sum. `noise` is float32 and of x's shape; diffusers
// hands step() no generator, so that it comes from the process-wide one and a seed does not repeat
// it. The parity tools hand over the picture's own, which goes on after the initial latents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace braid {

enum class TimeShift { kExponential, kLinear };

// What replaces the levels between the first and the last, once they are shifted.
enum class SigmaSpacing { kShifted, kKarras, kExponential, kBeta };

// The fields of scheduler_config.json, with diffusers' defaults.
struct ScheduleConfig {
  std::int64_t num_train_timesteps = 1000;
  double shift = 1.0;                 // the static shift; unused with use_dynamic_shifting
  bool use_dynamic_shifting = false;  // the shift follows from the number of image tokens
  double base_shift = 0.5, max_shift = 1.15;
  std::int64_t base_image_seq_len = 256, max_image_seq_len = 4096;
  bool invert_sigmas = false;
  double shift_terminal = 0;  // stretches the levels so that the last is this one; 0: does not
  SigmaSpacing spacing = SigmaSpacing::kShifted;
  TimeShift time_shift = TimeShift::kExponential;
  bool stochastic_sampling = false;
  bool use_flow_sigmas = false;  // start from the levels of training, not from 1 to 1/steps
  std::optional<double> sigma_min = {}, sigma_max = {};  // ends of a spacing; unset: of the levels
};

// Reads scheduler_config.json; `source` names it in errors. Fields that are absent or null take
// their defaults, unknown ones are ignored. Throws InputError for another class of scheduler, more
// than one spacing, an unknown time_shift_type, and numbers that lead to no levels.
ScheduleConfig read_schedule_config(const Json& json, const std::string& source);

struct Schedule {
  std::vector<float> sigmas;     // steps + 1 levels; the last is 0, or 1 when inverted
  std::vector<float> timesteps;  // sigma * num_train_timesteps of each step

  // Without the first steps.
  Schedule from(int step) const {
    return {.sigmas = {sigmas.begin() + step, sigmas.end()},
            .timesteps = {timesteps.begin() + step, timesteps.end()}};
  }
};

// The shift that dynamic shifting takes for `image_tokens` (packed latents: width/16 * height/16).
double dynamic_shift(const ScheduleConfig& config, std::int64_t image_tokens);

// The shift of FLUX.2, which depends on the number of steps too: measured at 10 and at 200 steps.
double empirical_shift(std::int64_t image_tokens, int steps);

// Where a pipeline has a shift or levels of its own.
struct ScheduleStart {
  int steps;
  std::int64_t image_tokens;
  double mu;                       // the shift that dynamic shifting takes
  std::vector<float> levels = {};  // before any shift; none: from 1 to 1/steps, as NumPy spaces
                                   // them, or with use_flow_sigmas those of training
};

// Throws InputError unless 1 <= steps (2 <= steps where there is a terminal shift), and where the
// options give no finite levels, as a falling line of dynamic shifts can. Built without contraction
// to fused multiply-adds (-ffp-contract=off), which round once where the reference rounds twice.
Schedule make_schedule(const ScheduleConfig& config, const ScheduleStart& start);
// With dynamic_shift().
Schedule make_schedule(const ScheduleConfig& config, int steps, std::int64_t image_tokens);

// dt of a plain step.
inline float step_size(const Schedule& schedule, int step) {
  return schedule.sigmas[step + 1] - schedule.sigmas[step];
}

// x in [0, 1] with I_x(0.6, 0.6) = q: the quantile of the beta distribution that spaces kBeta, as
// scipy.stats.beta.ppf has it (1e-15 relative; the ends and the median bit for bit).
double beta_quantile(double q);

}  // namespace braid
