#include "pipeline/sampling/denoise.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

std::vector<std::int64_t> all_but_the_batch(const Tensor& x) {
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 1; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

// `guided` shortened, picture by picture, to at most `cap` times the length of `positive`.
Tensor cap_norm(const Tensor& guided, const Tensor& positive, double cap) {
  const auto length = [&](const Tensor& x) {
    return at::linalg_vector_norm(x, 2, all_but_the_batch(x), /*keepdim=*/true);
  };
  const auto shrink = cap * length(positive) / length(guided);
  return guided * shrink.nan_to_num(1).clamp_max(1);
}

// `guided` with, picture by picture, the standard deviation of `positive`, mixed in by `amount`:
// Lin et al., 2024, section 3.4.
Tensor rescale(const Tensor& guided, const Tensor& positive, double amount) {
  const auto spread = [&](const Tensor& x) {
    return x.std(all_but_the_batch(x), /*unbiased=*/true, /*keepdim=*/true);
  };
  const auto same_spread = guided * (spread(positive) / spread(guided)).nan_to_num(1);
  return amount * same_spread + (1 - amount) * guided;
}

// negative + scale * (positive - negative): Ho and Salimans, 2021. What follows it is in float32.
Tensor guide(const std::vector<Tensor>& velocities, const TrueGuidance& guidance) {
  const auto& positive = velocities.front();
  if (velocities.size() == 1) return positive;
  const auto guided = velocities[1] + guidance.scale * (positive - velocities[1]);
  if (guidance.norm_cap == 0 && guidance.rescale == 0) return guided;
  auto wide = guided.to(at::kFloat);
  const auto want = positive.to(at::kFloat);
  if (guidance.norm_cap > 0) wide = cap_norm(wide, want, guidance.norm_cap);
  if (guidance.rescale > 0) wide = rescale(wide, want, guidance.rescale);
  return wide.to(guided.scalar_type());
}

// float32 noise in the shape of packed latents, from the pictures' own generators.
Tensor fresh_noise(const DenoiseJob& job, const Tensor& like_BNC) {
  std::vector<Tensor> noise;
  for (const auto& generator : job.generators)
    noise.push_back(at::randn({1, like_BNC.size(1), like_BNC.size(2)}, generator, at::kFloat));
  return at::cat(noise).to(like_BNC.device());
}

// x(sigma) -> x(sigma'), for the velocity v = dx / d(sigma). The noise levels are 0-dim tensors, as
// in the reference: products with v round to v's dtype.
Tensor step(const DenoiseJob& job, bool stochastic, const Tensor& x_BNC, const Tensor& v_BNC,
            float sigma, float next_sigma) {
  if (!stochastic) return ops::euler_step(x_BNC, v_BNC, next_sigma - sigma);
  const auto scalar = [](float value) { return at::scalar_tensor(value, at::kFloat); };
  const auto x = x_BNC.to(at::kFloat);
  const auto clean = x - scalar(sigma) * v_BNC;
  const auto next = (1 - scalar(next_sigma)) * clean + scalar(next_sigma) * fresh_noise(job, x);
  return next.to(v_BNC.scalar_type());
}

}  // namespace

DenoiseResult denoise(const PredictAll& predict, const ScheduleConfig& config,
                      const Schedule& schedule, DenoiseJob job,
                      const std::function<void(int done)>& on_step) {
  DenoiseResult result{.latents_BNC = job.latents_BNC, .first_velocity_BNC = {}};
  auto& latents = result.latents_BNC;
  for (std::size_t i = 0; i < schedule.timesteps.size(); ++i) {
    for (auto& branch : job.branches) job.set_step(branch, latents, schedule.timesteps[i]);
    const auto velocities = predict(job.branches);
    if (i == 0) result.first_velocity_BNC = velocities.front();
    const auto velocity = guide(velocities, job.guidance);
    latents = step(job, config.stochastic_sampling, latents, velocity, schedule.sigmas[i],
                   schedule.sigmas[i + 1]);
    on_step(int(i) + 1);
  }
  return result;
}

}  // namespace braid
