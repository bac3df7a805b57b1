#include "pipeline/sampling/grids.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/request_error.h"
#include "pipeline/request/limits.h"
#include "pipeline/sampling/named_sampling.h"

namespace braid {
namespace {

// ComfyUI's tables: one level per step of training, or ten where the shift depends on the size.
constexpr int kStaticTable = 1000, kDynamicTable = 10'000;

double shifted(const ScheduleConfig& config, double mu, double t) {
  if (!config.use_dynamic_shifting) return config.shift * t / (1 + (config.shift - 1) * t);
  const double weight = config.time_shift == TimeShift::kLinear ? mu : std::exp(mu);
  return weight / (weight + (1 / t - 1));
}

// ComfyUI's ModelSamplingDiscreteFlow and ModelSamplingFlux: levels of training, ascending.
class LevelTable {
 public:
  LevelTable(const ScheduleConfig& config, double mu)
      : config_(config), mu_(mu), size_(sampling_limits(config).table_size) {}

  int size() const { return size_; }
  double operator[](int j) const { return shifted(config_, mu_, double(j + 1) / size_); }
  double lowest() const { return (*this)[0]; }
  double highest() const { return (*this)[size_ - 1]; }

 private:
  const ScheduleConfig& config_;
  double mu_;
  int size_;
};

// Quantiles of the beta distribution, rounded half to even.
int beta_place(int table, double part) {
  return int(std::nearbyint(beta_quantile(1 - part) * (table - 1)));
}

// The levels of a table that a schedule takes. Equal neighbours count once, since samplers divide
// by their difference: more steps than levels ask for them.
std::vector<int> places_of(SigmaSchedule schedule, int table, int steps) {
  std::vector<int> places;
  for (int x = 0; x < steps; ++x) {
    const int place = schedule == SigmaSchedule::kBeta
                          ? beta_place(table, double(x) / steps)
                          : table - 1 - int(x * (double(table) / steps));  // divided first
    if (places.empty() || places.back() != place) places.push_back(place);
  }
  return places;
}

std::vector<double> levels_at(const LevelTable& table, const std::vector<int>& places) {
  std::vector<double> levels;
  for (const int place : places) levels.push_back(table[place]);
  return levels;
}

std::vector<double> levels_of(SigmaSchedule schedule, const LevelTable& table, int steps) {
  switch (schedule) {
    case SigmaSchedule::kSimple:
    case SigmaSchedule::kBeta:
      return levels_at(table, places_of(schedule, table.size(), steps));
    case SigmaSchedule::kKarras:
      return karras_sigmas(table.lowest(), table.highest(), steps);
    case SigmaSchedule::kExponential:
      return exponential_sigmas(table.lowest(), table.highest(), steps);
    case SigmaSchedule::kModel:
      break;
  }
  return {};
}

Schedule schedule_of(const ScheduleConfig& config, const std::vector<double>& levels) {
  Schedule schedule{.timesteps_per_sigma = float(config.num_train_timesteps)};
  for (const double level : levels) {
    schedule.sigmas.push_back(float(level));
    schedule.timesteps.push_back(schedule.timestep_of(schedule.sigmas.back()));
  }
  schedule.sigmas.push_back(0);
  return schedule;
}

// A last 0 may be left out, unless other levels follow from it. Where it is stretched, it counts as
// a level above 0, as in diffusers; where levels are spaced anew down to it, 0 would follow 0.
enum class LastZero { kDropped, kKept, kRefused };

LastZero last_base_zero(const SamplingLimits& limits, bool has_other_shift) {
  if (limits.is_stretched && !has_other_shift) return LastZero::kKept;
  return limits.is_respaced ? LastZero::kRefused : LastZero::kDropped;
}

std::vector<double> checked_levels(const char* field, const char* name, std::vector<double> levels,
                                   LastZero last) {
  const bool has_zero = levels.size() > 1 && levels.back() == 0;
  require_field(field, !has_zero || last != LastZero::kRefused, "the ", name,
                " should lie above 0, since the ",
                "model's scheduler spaces all levels by the last one, which is 0");
  const bool is_kept = has_zero && last == LastZero::kKept;
  const auto count = levels.size() - std::size_t(has_zero && !is_kept);
  require_field(field, count <= std::size_t(kMostSteps), "the ", name, " should be at most ",
                kMostSteps, " noise levels, they are ", count);
  if (has_zero) levels.pop_back();
  double before = HUGE_VAL;
  for (const double level : levels) {
    require_field(field, float(level) > 0 && level <= 1, "the ", name,
                  " should lie above 0 and up to 1, one is ", level);
    require_field(field, level < before, "the ", name, " should fall, but ", level, " follows ",
                  before);
    require_field(field, float(level) < float(before), "the ", name, " should fall by more, but ",
                  level, " follows ", before, ", which is the same in 32 bits");
    before = level;
  }
  if (is_kept) levels.push_back(0);
  return levels;
}

void check_together(const Sampling& s, const SamplingLimits& limits) {
  const int sources =
      int(s.schedule.has_value()) + int(!s.sigmas.empty()) + int(!s.base_sigmas.empty());
  require_field("schedule", sources <= 1,
                "a request may have a schedule, sigmas or base sigmas, but only one of ",
                "them: each says all noise levels");
  require_field("sampler", !s.sampler || !sampling_name(kSamplers, *s.sampler).empty(),
                "there is no such sampler as number ", int(s.sampler.value_or(Sampler::kEuler)));
  require_field("schedule", !s.schedule || !sampling_name(kSigmaSchedules, *s.schedule).empty(),
                "there is no such schedule as number ",
                int(s.schedule.value_or(SigmaSchedule::kModel)));
  require_field("shift", !s.shift || (std::isfinite(*s.shift) && *s.shift > 0),
                "the shift should be a number above 0, it is ", s.shift.value_or(0));
  require_field("shift", !s.shift || s.sigmas.empty(),
                "a shift has no effect on sigmas, which are used as they ",
                "are: give base sigmas, or no shift");
  if (!limits.is_inverted) return;
  const auto sampler = s.sampler.value_or(limits.usual);
  require_field("sampler", sampler == Sampler::kEuler || sampler == Sampler::kLcm, "the sampler ",
                sampling_name(kSamplers, sampler),
                " needs noise levels that fall, but the scheduler of ",
                "this model inverts them: it takes euler and lcm");
  require_field(
      "schedule",
      s.schedule.value_or(SigmaSchedule::kModel) == SigmaSchedule::kModel && s.sigmas.empty(),
      "this model's scheduler inverts its noise levels: it takes no schedule and no sigmas");
}

}  // namespace

SamplingLimits sampling_limits(const ScheduleConfig& config) {
  return {.usual = config.stochastic_sampling ? Sampler::kLcm : Sampler::kEuler,
          .is_inverted = config.invert_sigmas,
          .table_size = config.use_dynamic_shifting ? kDynamicTable : kStaticTable,
          .is_stretched = config.shift_terminal > 0,
          .is_respaced = config.spacing != SigmaSpacing::kShifted};
}

Sampling joined_sampling(const Sampling& first, const Sampling& otherwise) {
  auto joined = first;
  if (!joined.sampler) joined.sampler = otherwise.sampler;
  if (!names_levels(first)) {
    joined.schedule = otherwise.schedule;
    joined.base_sigmas = otherwise.base_sigmas;
    if (!first.shift) joined.sigmas = otherwise.sigmas;
  }
  if (!first.shift && joined.sigmas.empty()) joined.shift = otherwise.shift;
  return joined;
}

SettledSampling settle_sampling(const Sampling& asked, const Sampling& named,
                                std::optional<int> steps, int usual_steps,
                                const SamplingLimits& limits,
                                const std::function<void(const std::string&)>& warn) {
  check_together(asked, limits);
  SettledSampling settled{.sampling = joined_sampling(asked, named)};
  auto& s = settled.sampling;
  check_together(s, limits);
  if (!s.sampler) s.sampler = limits.usual;
  s.sigmas = checked_levels("sigmas", "sigmas", s.sigmas, LastZero::kDropped);
  s.base_sigmas = checked_levels("base_sigmas", "base sigmas", s.base_sigmas,
                                 last_base_zero(limits, s.shift.has_value()));
  settled.steps = steps.value_or(usual_steps);
  if (const auto count = int(std::max(s.sigmas.size(), s.base_sigmas.size())); count > 0) {
    if (steps && *steps != count)
      warn(text_of("the number of steps is that of the noise levels, ", count, ", not ", *steps));
    settled.steps = count;
  }
  settled.num_steps = settled.steps;
  if (s.schedule == SigmaSchedule::kBeta || s.schedule == SigmaSchedule::kSimple) {
    const int table = s.shift ? kStaticTable : limits.table_size;
    settled.num_steps = int(places_of(*s.schedule, table, settled.steps).size());
    if (settled.num_steps < settled.steps)
      warn(text_of("the ", sampling_name(kSigmaSchedules, *s.schedule), " schedule has ",
                   settled.num_steps, " noise levels for ", settled.steps,
                   " steps: that many are run"));
  }
  return settled;
}

ScheduleConfig shifted_by(ScheduleConfig config, std::optional<double> shift) {
  if (!shift) return config;
  config.use_dynamic_shifting = config.use_flow_sigmas = false;
  config.shift = *shift;
  config.shift_terminal = 0;
  return config;
}

bool has_own_levels(const Sampling& s) {
  return s.sigmas.empty() && s.base_sigmas.empty() && !s.shift &&
         s.schedule.value_or(SigmaSchedule::kModel) == SigmaSchedule::kModel;
}

namespace {

Schedule unchecked_grid(const Sampling& s, const ScheduleConfig& config, ScheduleStart start) {
  if (!s.sigmas.empty()) return schedule_of(config, s.sigmas);
  if (s.schedule.value_or(SigmaSchedule::kModel) != SigmaSchedule::kModel)
    return schedule_of(config, levels_of(*s.schedule, LevelTable(config, start.mu), start.steps));
  start.levels.assign(s.base_sigmas.begin(), s.base_sigmas.end());
  if (!start.levels.empty()) start.steps = int(start.levels.size());
  return make_schedule(config, start);
}

// Samplers divide by the differences of neighbours.
void check_differ(const Schedule& schedule, double shift) {
  for (std::size_t i = 1; i < schedule.sigmas.size(); ++i)
    require_field("shift", schedule.sigmas[i] != schedule.sigmas[i - 1], "a shift of ", shift,
                  " is too far from ", "1: noise levels that follow each other would be the same, ",
                  schedule.sigmas[i]);
}

}  // namespace

Schedule make_grid(const Sampling& s, ScheduleConfig config, ScheduleStart start) {
  auto grid = unchecked_grid(s, shifted_by(std::move(config), s.shift), start);
  if (s.shift) check_differ(grid, *s.shift);
  return grid;
}

Schedule begun_below_one(Schedule schedule, const ScheduleConfig& config, double mu) {
  constexpr double kPart = 1e-4;
  if (schedule.sigmas.front() < 1) return schedule;
  auto& first = schedule.sigmas.front();
  const auto second = schedule.sigmas[1];
  first = float(shifted(config, mu, 1 - kPart));
  if (first <= second) first = std::midpoint(second, 1.0F);
  require_field("sampler", first > second && first < 1,
                "er_sde begins below a noise level of 1, which the second ", "level, ", second,
                ", leaves no room for");
  schedule.timesteps.front() = schedule.timestep_of(schedule.sigmas.front());
  return schedule;
}

}  // namespace braid
