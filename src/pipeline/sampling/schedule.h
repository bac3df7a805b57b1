// The noise levels of FlowMatchEulerDiscrete, bit for bit as diffusers' pipelines compute them.
//
// A step goes from sigma_i to sigma_{i+1} (1 is noise, 0 the picture), in float32, from latents x
// and velocity v, both of the model's dtype:
//   plain:       x' = float32(x) + dt * v, dt = sigma_{i+1} - sigma_i
//   stochastic:  x' = (1 - sigma_{i+1}) * (float32(x) - sigma_i * v) + sigma_{i+1} * noise
// The result is cast back to v's dtype. The scalars are 0-dim float32 tensors in the reference, so
// the products with v are rounded to v's dtype before the sum. `noise` is float32 and of x's shape.
// diffusers gives step() no generator: its noise comes from the process-wide one, and a seed does
// not reproduce it. The parity tools pass the picture's own, which continues after the initial
// latents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace braid {

enum class TimeShift { kExponential, kLinear };

// How the levels between the first and the last are respaced after shifting.
enum class SigmaSpacing { kShifted, kKarras, kExponential, kBeta };

// The fields of scheduler_config.json, with diffusers' defaults.
struct ScheduleConfig {
  std::int64_t num_train_timesteps = 1000;
  double shift = 1.0;                 // the static shift; unused with use_dynamic_shifting
  bool use_dynamic_shifting = false;  // the shift depends on the number of image tokens
  double base_shift = 0.5, max_shift = 1.15;
  std::int64_t base_image_seq_len = 256, max_image_seq_len = 4096;
  bool invert_sigmas = false;
  double shift_terminal = 0;  // stretches the levels so that the last equals this; 0: off
  SigmaSpacing spacing = SigmaSpacing::kShifted;
  TimeShift time_shift = TimeShift::kExponential;
  bool stochastic_sampling = false;
  bool use_flow_sigmas = false;  // start from the training levels, not from 1 to 1/steps
  std::optional<double> sigma_min = {}, sigma_max = {};  // ends of a spacing; unset: of the levels
};

// Reads scheduler_config.json; `source` names it in errors. Absent or null fields take their
// defaults, unknown ones are ignored. Throws InputError for another scheduler class, more than one
// spacing, an unknown time_shift_type, and numbers that yield no levels.
ScheduleConfig read_schedule_config(const Json& json, const std::string& source);

// Throws InputError unless the class of this name is diffusers' FlowMatchEulerDiscreteScheduler or
// one derived from it; `source` is the file that asks for it.
void require_known_scheduler(const std::string& name, const std::string& source);

struct Schedule {
  std::vector<float> sigmas = {};     // steps + 1 levels; the last is 0, or 1 when inverted
  std::vector<float> timesteps = {};  // sigma * num_train_timesteps of each step
  float timesteps_per_sigma = 1000;

  float timestep_of(float sigma) const { return sigma * timesteps_per_sigma; }
  // The schedule without its first `step` steps.
  Schedule from(int step) const {
    return {.sigmas = {sigmas.begin() + step, sigmas.end()},
            .timesteps = {timesteps.begin() + step, timesteps.end()},
            .timesteps_per_sigma = timesteps_per_sigma};
  }
};

// The dynamic shift for `image_tokens` (packed latents: width/16 * height/16).
double dynamic_shift(const ScheduleConfig& config, std::int64_t image_tokens);

// The shift of FLUX.2, which also depends on the number of steps: measured at 10 and at 200 steps.
double empirical_shift(std::int64_t image_tokens, int steps);

// What pipelines with their own shift or levels know of a request.
struct ScheduleStart {
  int steps;
  std::int64_t image_tokens;
  double mu;                       // used as the dynamic shift
  std::vector<float> levels = {};  // before any shift; empty: from 1 to 1/steps, as NumPy spaces
                                   // them, or with use_flow_sigmas those of training
};

// Throws InputError unless 1 <= steps (2 <= steps with a terminal shift), or if the options yield
// no finite levels, as a falling line of dynamic shifts can. Built with -ffp-contract=off: fused
// multiply-adds would round once where the reference rounds twice.
Schedule make_schedule(const ScheduleConfig& config, const ScheduleStart& start);
// Uses dynamic_shift().
Schedule make_schedule(const ScheduleConfig& config, int steps, std::int64_t image_tokens);

// x in [0, 1] with I_x(0.6, 0.6) = q: the quantile of the beta distribution that spaces kBeta, as
// in scipy.stats.beta.ppf (1e-15 relative; the ends and the median bit for bit).
double beta_quantile(double q);

// Levels fall from `high` to `low`: with Karras et al.'s rho of 7, or with equal ratios.
std::vector<double> karras_sigmas(double low, double high, int count);
std::vector<double> exponential_sigmas(double low, double high, int count);

}  // namespace braid
