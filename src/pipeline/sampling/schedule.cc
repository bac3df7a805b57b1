// Bit-equality depends on types. Levels given by the pipeline are float32 NumPy arrays (Python
// floats are rounded to float32 before they meet one). Levels computed or respaced by the scheduler
// are float64. One template serves both.
#include "pipeline/sampling/schedule.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/request_error.h"

namespace braid {
namespace {

constexpr char kClassName[] = "FlowMatchEulerDiscreteScheduler";

SigmaSpacing read_spacing(const JsonObject& json) {
  constexpr std::array<std::pair<const char*, SigmaSpacing>, 3> kFlags{
      {{"use_karras_sigmas", SigmaSpacing::kKarras},
       {"use_exponential_sigmas", SigmaSpacing::kExponential},
       {"use_beta_sigmas", SigmaSpacing::kBeta}}};
  auto spacing = SigmaSpacing::kShifted;
  std::string set;
  for (const auto& [flag, meaning] : kFlags) {
    if (!json.flag_or(flag, false)) continue;
    require(set.empty(), json.source(), " sets both ", set, " and ", flag,
            "; only one may be true");
    set = flag;
    spacing = meaning;
  }
  return spacing;
}

TimeShift read_time_shift(const JsonObject& json) {
  const auto name = json.string_or("time_shift_type", "exponential");
  require(name == "exponential" || name == "linear", json.source(),
          ": 'time_shift_type' should be 'exponential' or 'linear', it is '", name, "'");
  return name == "linear" ? TimeShift::kLinear : TimeShift::kExponential;
}

std::optional<double> read_bound(const JsonObject& json, const char* key) {
  if (!json.has(key)) return {};
  const double bound = json.number_or(key, 0);
  require(bound > 0, json.source(), ": '", key, "' should be above 0, it is ", bound);
  return bound;
}

void check_numbers(const ScheduleConfig& config, const std::string& source) {
  require(config.shift > 0, source, ": 'shift' should be above 0, it is ", config.shift);
  require(config.base_image_seq_len != config.max_image_seq_len, source,
          ": 'base_image_seq_len' and 'max_image_seq_len' should differ, both are ",
          config.max_image_seq_len);
  require(config.shift_terminal >= 0 && config.shift_terminal < 1, source,
          ": 'shift_terminal' should be at least 0 and below 1, it is ", config.shift_terminal);
}

// numpy.linspace in float64: multiples of one rounded step, and the exact end.
std::vector<double> linspace(double start, double stop, int count) {
  const double step = count > 1 ? (stop - start) / (count - 1) : 0;
  std::vector<double> out(count);
  for (int i = 0; i < count; ++i) out[i] = i * step + start;
  if (count > 1) out.back() = stop;
  return out;
}

template <class T>
void shift_statically(std::vector<T>& sigmas, double shift) {
  const auto factor = static_cast<T>(shift), excess = static_cast<T>(shift - 1);
  for (auto& s : sigmas) s = factor * s / (1 + excess * s);
}

// mu / (mu + (1/s - 1)) for the linear kind; the exponential kind uses e^mu for mu.
template <class T>
void shift_dynamically(std::vector<T>& sigmas, TimeShift kind, double mu) {
  const auto weight = static_cast<T>(kind == TimeShift::kLinear ? mu : std::exp(mu));
  for (auto& s : sigmas) s = weight / (weight + (1 / s - 1));
}

template <class T>
void stretch_to_terminal(std::vector<T>& sigmas, double terminal) {
  const T scale = (1 - sigmas.back()) / static_cast<T>(1 - terminal);
  for (auto& s : sigmas) s = 1 - (1 - s) / scale;
}

}  // namespace

// Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models", equation 5.
std::vector<double> karras_sigmas(double low, double high, int count) {
  constexpr double kRho = 7;
  const double low_root = std::pow(low, 1 / kRho), high_root = std::pow(high, 1 / kRho);
  auto out = linspace(0, 1, count);
  for (auto& s : out) s = std::pow(high_root + s * (low_root - high_root), kRho);
  return out;
}

std::vector<double> exponential_sigmas(double low, double high, int count) {
  auto out = linspace(std::log(high), std::log(low), count);
  for (auto& s : out) s = std::exp(s);
  return out;
}

namespace {

// "Beta Sampling is All You Need" (arXiv 2407.12173).
std::vector<double> beta_sigmas(double low, double high, int count) {
  auto out = linspace(0, 1, count);
  for (auto& s : out) s = low + beta_quantile(1 - s) * (high - low);
  return out;
}

std::vector<float> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// Steps 2 to 4 of the reference's set_timesteps, and the rounding to float32 that follows.
template <class T>
std::vector<float> spaced(const ScheduleConfig& config, std::vector<T> sigmas, double mu) {
  if (config.use_dynamic_shifting) shift_dynamically(sigmas, config.time_shift, mu);
  if (!config.use_dynamic_shifting) shift_statically(sigmas, config.shift);
  if (config.shift_terminal > 0) stretch_to_terminal(sigmas, config.shift_terminal);
  const double low = config.sigma_min.value_or(sigmas.back());
  const double high = config.sigma_max.value_or(sigmas.front());
  const int count = static_cast<int>(sigmas.size());
  switch (config.spacing) {
    case SigmaSpacing::kKarras:
      return rounded(karras_sigmas(low, high, count));
    case SigmaSpacing::kExponential:
      return rounded(exponential_sigmas(low, high, count));
    case SigmaSpacing::kBeta:
      return rounded(beta_sigmas(low, high, count));
    case SigmaSpacing::kShifted:
      break;
  }
  return {sigmas.begin(), sigmas.end()};
}

// Evenly between the ends of training, which already carry the static shift (float32, by torch).
std::vector<double> flow_sigmas(const ScheduleConfig& config, int steps) {
  const auto train = static_cast<float>(config.num_train_timesteps);
  std::vector<float> ends = {1, 1 / train};
  if (!config.use_dynamic_shifting) shift_statically(ends, config.shift);
  const auto scale = static_cast<double>(config.num_train_timesteps);
  auto out = linspace(ends[0] * scale, ends[1] * scale, steps);
  for (auto& s : out) s /= scale;
  return out;
}

std::vector<float> first_sigmas(const ScheduleConfig& config, const ScheduleStart& start) {
  if (!start.levels.empty()) return spaced(config, start.levels, start.mu);
  if (config.use_flow_sigmas) return spaced(config, flow_sigmas(config, start.steps), start.mu);
  return spaced(config, rounded(linspace(1, 1.0 / start.steps, start.steps)), start.mu);
}

}  // namespace

void require_known_scheduler(const std::string& name, const std::string& source) {
  require(name.find(kClassName) != name.npos, source, " asks for the scheduler ", name,
          "; Braid has ", kClassName, " only");
}

ScheduleConfig read_schedule_config(const Json& object, const std::string& source) {
  const JsonObject json(object, source);
  require_known_scheduler(json.class_name_or(kClassName), source);
  ScheduleConfig config;
  const auto length = [&](const char* key, std::int64_t otherwise) {
    return json.integer_or(key, otherwise, 1, 1'000'000'000);
  };
  config.num_train_timesteps = length("num_train_timesteps", config.num_train_timesteps);
  config.shift = json.number_or("shift", config.shift);
  config.use_dynamic_shifting = json.flag_or("use_dynamic_shifting", false);
  config.base_shift = json.number_or("base_shift", config.base_shift);
  config.max_shift = json.number_or("max_shift", config.max_shift);
  config.base_image_seq_len = length("base_image_seq_len", config.base_image_seq_len);
  config.max_image_seq_len = length("max_image_seq_len", config.max_image_seq_len);
  config.invert_sigmas = json.flag_or("invert_sigmas", false);
  config.shift_terminal = json.number_or("shift_terminal", 0);
  config.spacing = read_spacing(json);
  config.time_shift = read_time_shift(json);
  config.stochastic_sampling = json.flag_or("stochastic_sampling", false);
  config.use_flow_sigmas = json.flag_or("use_flow_sigmas", false);
  config.sigma_min = read_bound(json, "sigma_min");
  config.sigma_max = read_bound(json, "sigma_max");
  check_numbers(config, source);
  return config;
}

double dynamic_shift(const ScheduleConfig& config, std::int64_t image_tokens) {
  const auto low = static_cast<double>(config.base_image_seq_len);
  const auto high = static_cast<double>(config.max_image_seq_len);
  const double slope = (config.max_shift - config.base_shift) / (high - low);
  const double offset = config.base_shift - slope * low;
  return static_cast<double>(image_tokens) * slope + offset;
}

// compute_empirical_mu of diffusers' Flux2Pipeline.
double empirical_shift(std::int64_t image_tokens, int steps) {
  constexpr std::int64_t kMany = 4300;  // tokens; beyond, the line for 200 steps serves all
  const auto tokens = static_cast<double>(image_tokens);
  const double at_200 = 0.00016927 * tokens + 0.45666666;
  if (image_tokens > kMany) return at_200;
  const double at_10 = 8.73809524e-05 * tokens + 1.89833333;
  const double slope = (at_200 - at_10) / 190.0;
  return slope * steps + (at_200 - 200.0 * slope);
}

Schedule make_schedule(const ScheduleConfig& config, int steps, std::int64_t image_tokens) {
  return make_schedule(
      config,
      {.steps = steps, .image_tokens = image_tokens, .mu = dynamic_shift(config, image_tokens)});
}

Schedule make_schedule(const ScheduleConfig& config, const ScheduleStart& start) {
  const int steps = start.steps;
  require_field("steps", steps >= 1, "a picture needs at least 1 step, not ", steps);
  require_field("steps", steps >= 2 || config.shift_terminal == 0,
                "a scheduler with 'shift_terminal' needs at least 2 steps, not ", steps);
  Schedule schedule{.timesteps_per_sigma = static_cast<float>(config.num_train_timesteps)};
  auto& sigmas = schedule.sigmas;
  sigmas = first_sigmas(config, start);
  if (config.invert_sigmas)
    for (auto& s : sigmas) s = 1 - s;
  for (const float s : sigmas) {
    require(std::isfinite(s), "the scheduler's options lead to no noise levels for ",
            start.image_tokens, " image tokens");
    schedule.timesteps.push_back(schedule.timestep_of(s));
  }
  sigmas.push_back(config.invert_sigmas ? 1.0f : 0.0f);
  return schedule;
}

// I_x(a, a) = x^a / B(a, a) * sum_n (1-a)_n / n! * x^n / (a+n); the series converges by halves up
// to x = 1/2, and I_x = 1 - I_{1-x} beyond. Newton's method starts from the first term alone.
double beta_quantile(double q) {
  constexpr double kA = 0.6;
  // The mean of two float32 levels often lies halfway between two float32 numbers. SciPy's median,
  // one ulp above the true 1/2, then decides the rounding.
  constexpr double kMedian = 0.5 + 0x1p-53;
  if (q <= 0) return 0;
  if (q == 0.5) return kMedian;
  if (q > 0.5) return 1 - beta_quantile(1 - q);
  const double beta = std::tgamma(kA) * std::tgamma(kA) / std::tgamma(2 * kA);
  double x = std::pow(q * kA * beta, 1 / kA);
  for (int round = 0; round < 20; ++round) {
    double sum = 1 / kA, factor = 1;
    for (int n = 1; n < 80; ++n) {
      factor *= (n - kA) / n * x;
      sum += factor / (kA + n);
    }
    const double miss = std::pow(x, kA) * sum / beta - q;
    const double slope = std::pow(x * (1 - x), kA - 1) / beta;
    const double next = x - miss / slope;
    if (std::abs(next - x) <= 1e-16 * x) return next;
    x = next;
  }
  return x;
}

}  // namespace braid
