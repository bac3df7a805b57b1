#include "serve/jobs/pace.h"

#include <algorithm>
#include <cmath>

namespace braid::serve {
namespace {

constexpr double kWeightOfNewest = 0.3;
constexpr std::size_t kMostSizes = 256;  // clients choose sizes: bounds what is kept

std::int64_t work_of(const Request& r) {
  const int frames = r.layers ? *r.layers + 1 : r.frames.value_or(1);  // layers and their sum
  return std::int64_t(r.width.value_or(0)) * r.height.value_or(0) * frames *
         (r.negative_prompt ? 2 : 1) *
         evaluations_per_step(r.sampling.sampler.value_or(Sampler::kEuler));
}

}  // namespace

int steps_taken(const Request& request) {
  const int steps = request.steps.value_or(0);
  return steps - skipped_steps(steps, request.pictures.strength.value_or(1));
}

void Pace::add(Averages& averages, std::int64_t work, double seconds) {
  if (averages.size() >= kMostSizes) averages.clear();
  const auto [it, is_first] = averages.try_emplace(work, seconds);
  if (!is_first) it->second += kWeightOfNewest * (seconds - it->second);
}

std::optional<double> Pace::of(const Averages& averages, std::int64_t work) {
  if (averages.empty()) return {};
  const auto distance = [&](const auto& one) {
    return std::abs(std::log(double(one.first) / double(work)));
  };
  const auto nearest =
      std::min_element(averages.begin(), averages.end(),
                       [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  return nearest->second * double(work) / double(nearest->first);
}

void Pace::step_took(const Request& request, int pictures, double seconds) {
  pictures_per_round_ = std::max(1, pictures);
  add(step_, work_of(request), seconds);
}

void Pace::rest_took(const Request& request, double seconds) {
  add(rest_, work_of(request), seconds);
}

std::optional<double> Pace::seconds_of(const Request& request) const {
  return seconds_left(request, 0, 0);
}

std::optional<double> Pace::seconds_left(const Request& request, int first, int step) const {
  const auto one_step = of(step_, work_of(request));
  if (!one_step) return {};
  const double round = steps_taken(request) * *one_step + of(rest_, work_of(request)).value_or(0);
  const double rounds = std::ceil(double(request.num_images - first) / pictures_per_round_);
  return rounds * round - step * *one_step;
}

}  // namespace braid::serve
