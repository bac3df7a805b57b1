// How pictures are reached from noise: the sampler, and the noise levels between its steps. A level
// (sigma) is 1 for noise alone and 0 for the picture.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

// Solvers of a flow, by ComfyUI's names; docs/sampling.md has their equations.
enum class Sampler {
  kEuler,           // the step of diffusers' FlowMatchEulerDiscreteScheduler
  kEulerAncestral,  // stochastic
  kHeun,            // two evaluations per step
  kDpm2,            // two evaluations per step, the second halfway
  kDpmpp2m,
  kResMultistep,
  kErSde,  // stochastic
  kLcm,    // stochastic; that scheduler's step with `stochastic_sampling`
};
inline constexpr std::array<std::pair<std::string_view, Sampler>, 8> kSamplers = {
    {{"euler", Sampler::kEuler},
     {"euler_ancestral", Sampler::kEulerAncestral},
     {"heun", Sampler::kHeun},
     {"dpm_2", Sampler::kDpm2},
     {"dpmpp_2m", Sampler::kDpmpp2m},
     {"res_multistep", Sampler::kResMultistep},
     {"er_sde", Sampler::kErSde},
     {"lcm", Sampler::kLcm}}};

// Counts the evaluations of every step but the last, which takes one.
constexpr int evaluations_per_step(Sampler sampler) {
  return sampler == Sampler::kHeun || sampler == Sampler::kDpm2 ? 2 : 1;
}

// Where the noise levels come from: the model's scheduler, as diffusers uses it, or ComfyUI's
// schedules of that name, under the model's shift.
enum class SigmaSchedule { kModel, kSimple, kBeta, kKarras, kExponential };
inline constexpr std::array<std::pair<std::string_view, SigmaSchedule>, 5> kSigmaSchedules = {
    {{"model", SigmaSchedule::kModel},
     {"simple", SigmaSchedule::kSimple},
     {"beta", SigmaSchedule::kBeta},
     {"karras", SigmaSchedule::kKarras},
     {"exponential", SigmaSchedule::kExponential}}};

// "res_multistep" of kResMultistep: the name in a table of this header.
template <class Value, std::size_t kSize>
constexpr std::string_view sampling_name(
    const std::array<std::pair<std::string_view, Value>, kSize>& table, Value value) {
  for (const auto& [name, one] : table)
    if (one == value) return name;
  return {};
}

// Unset members are what adapters' files name, else the model's, else Euler and the model's
// scheduler. At most one of `schedule`, `sigmas` and `base_sigmas` may be set.
struct Sampling {
  std::optional<Sampler> sampler = {};
  std::optional<SigmaSchedule> schedule = {};
  // Each step's level, falling, above 0 and up to 1; a last 0 may be left out. Used as they are;
  // their number is that of the steps.
  std::vector<double> sigmas = {};
  // The same, but they pass through the model's shift, as diffusers' `sigmas`. Where its terminal
  // shift stretches them, a last 0 is a level like the others.
  std::vector<double> base_sigmas = {};
  // Replaces the model's shift by a static one, k t / (1 + (k - 1) t); above 0.
  std::optional<double> shift = {};
};

}  // namespace braid
