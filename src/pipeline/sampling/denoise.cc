#include "pipeline/sampling/denoise.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr double kTimestepScale = 1000;  // FluxPipeline's own, whatever num_train_timesteps says

DenoiserInput input_of(const DenoiseJob& job, const Tensor& latents, float timestep) {
  const auto batch = latents.size(0);
  const auto on_device = latents.options().dtype(at::kFloat);
  DenoiserInput in{.noise = {latents, job.image_ids_NA},
                   .text = {job.text_BTC, at::zeros({job.text_BTC.size(1), 3}, on_device)},
                   .pooled_BC = job.pooled_BC,
                   .timestep_B = at::full({batch}, timestep, on_device).to(latents.scalar_type()) /
                                 kTimestepScale};
  if (job.guidance) in.guidance_B = at::full({batch}, *job.guidance, on_device);
  return in;
}

// What the step asks of the denoiser: the prompt, and the negative prompt where there is one.
std::vector<DenoiserInput> branches_of(const DenoiseJob& job, const DenoiserInput& positive) {
  if (!job.negative_text_BTC.defined()) return {positive};
  auto negative = positive;
  negative.text.x_BLC = job.negative_text_BTC;
  negative.pooled_BC = job.negative_pooled_BC;
  return {positive, negative};
}

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
Tensor guide(const std::vector<Tensor>& velocities, const DenoiseJob& job) {
  const auto& positive = velocities.front();
  if (velocities.size() == 1) return positive;
  const auto guided = velocities[1] + job.true_cfg * (positive - velocities[1]);
  if (job.cfg_norm_cap == 0 && job.guidance_rescale == 0) return guided;
  auto wide = guided.to(at::kFloat);
  const auto want = positive.to(at::kFloat);
  if (job.cfg_norm_cap > 0) wide = cap_norm(wide, want, job.cfg_norm_cap);
  if (job.guidance_rescale > 0) wide = rescale(wide, want, job.guidance_rescale);
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
                      const Schedule& schedule, const DenoiseJob& job,
                      const std::function<void(int done)>& on_step) {
  DenoiseResult result{.latents_BNC = job.latents_BNC, .first_velocity_BNC = {}};
  auto& latents = result.latents_BNC;
  for (std::size_t i = 0; i < schedule.timesteps.size(); ++i) {
    const auto in = input_of(job, latents, schedule.timesteps[i]);
    const auto velocities = predict(branches_of(job, in));
    if (i == 0) result.first_velocity_BNC = velocities.front();
    const auto velocity = guide(velocities, job);
    latents = step(job, config.stochastic_sampling, latents, velocity, schedule.sigmas[i],
                   schedule.sigmas[i + 1]);
    on_step(int(i) + 1);
  }
  return result;
}

}  // namespace braid
