#include "pipeline/sampling/denoise.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

// x(sigma) -> x(sigma'), for the velocity v = dx / d(sigma). The noise levels are 0-dim tensors, as
// in the reference: products with v round to v's dtype.
Tensor step(const DenoiseJob& job, bool stochastic, const Tensor& x_BNC, const Tensor& v_BNC,
            float sigma, float next_sigma) {
  if (!stochastic) return ops::euler_step(x_BNC, v_BNC, next_sigma - sigma);
  const auto scalar = [](float value) { return at::scalar_tensor(value, at::kFloat); };
  const auto x = x_BNC.to(at::kFloat);
  const auto clean = x - scalar(sigma) * v_BNC;
  const auto noise = job.draw_for_step(job.branches.front()).to(x.device());
  const auto next = (1 - scalar(next_sigma)) * clean + scalar(next_sigma) * noise;
  return next.to(v_BNC.scalar_type());
}

// The drawn latents inside the mask; outside it the kept ones, after the last step without noise,
// whatever the schedule ends with.
Tensor with_kept(const KeptRegion& kept, const Tensor& drawn_BNC, std::optional<float> sigma) {
  const auto around = sigma ? with_noise(kept.clean_BNC, kept.noise_BNC, *sigma) : kept.clean_BNC;
  return (1 - kept.mask_BNC) * around + kept.mask_BNC * drawn_BNC;
}

// The fraction of the way from noise to the picture, in float32 as in the reference. Schedules may
// begin or end a rounding beyond noise and picture.
double part_done(const ScheduleConfig& config, float way_from, float timestep) {
  if (way_from > 0) return (way_from - timestep) / way_from;
  const auto all = static_cast<float>(config.num_train_timesteps);
  return std::clamp((all - timestep) / all, 0.0f, 1.0f);
}

std::vector<DenoiserInput> branches_at(const DenoiseJob& job, double done) {
  const bool is_one = done > job.guidance.until && job.unguided == DenoiseJob::Unguided::kOneBranch;
  return is_one ? std::vector{job.branches.front()} : job.branches;
}

// The pictures of a branch, each with the timesteps of all steps.
std::vector<DenoiserInput> with_all_timesteps(const DenoiseJob& job, DenoiserInput branch,
                                              const Schedule& schedule) {
  std::vector<Tensor> timesteps;
  for (const auto timestep : schedule.timesteps) {
    job.set_step(branch, job.latents_BNC, timestep);
    timesteps.push_back(branch.timestep_B);
  }
  const auto timesteps_SB = at::stack(timesteps);
  std::vector<DenoiserInput> pictures;
  for (std::int64_t i = 0; i < job.latents_BNC.size(0); ++i) {
    pictures.push_back(picture_of(branch, i));
    pictures.back().timestep_B = timesteps_SB.select(1, i);
  }
  return pictures;
}

// Batches of `count` pictures, each [S M] -> [S count M].
std::vector<Tensor> in_batches(const std::vector<Tensor>& made_SM, std::size_t count) {
  std::vector<Tensor> batches;
  for (auto i = made_SM.begin(); i != made_SM.end(); i += std::ptrdiff_t(count))
    batches.push_back(count == 1 ? i->unsqueeze(1)
                                 : at::stack(at::TensorList(&*i, count), /*dim=*/1));
  return batches;
}

void set_modulations(const DenoiseJob& job, std::vector<DenoiserInput>& branches, std::size_t i) {
  const auto step = std::int64_t(i);
  for (std::size_t b = 0; b < branches.size(); ++b) {
    auto& branch = branches[b];
    if (!job.modulations_SBM.empty()) branch.modulations_BM = job.modulations_SBM[b][step];
    for (std::size_t c = 0; c < job.modulations_of_controls_SBM.size(); ++c)
      branch.controls[c].modulations_BM = job.modulations_of_controls_SBM[c][step];
  }
}

// Keeps only the controls followed throughout step `i` of `count`, counted as in the reference.
void leave_controls(std::vector<DenoiserInput>& branches, const DenoiseJob& job, std::size_t i,
                    std::size_t count) {
  const double begin = double(i) / double(count), end = double(i + 1) / double(count);
  for (auto& branch : branches) {
    std::vector<ControlInput> left;
    for (std::size_t c = 0; c < branch.controls.size(); ++c)
      if (begin >= job.followed[c].from && end <= job.followed[c].to)
        left.push_back(branch.controls[c]);
    branch.controls = std::move(left);
  }
}

}  // namespace

Tensor with_noise(const Tensor& clean, const Tensor& noise, float sigma) {
  const auto level = at::full({1, 1, 1}, sigma, clean.options());
  return level * noise + (1 - level) * clean;
}

// All pictures of all branches at once, as weights may have to come from disk. Branches share their
// controls.
void modulate_steps(DenoiseJob& job, const Schedule& schedule, const Modulate& modulate,
                    const Controls& controls) {
  if (!modulate && !controls.modulate) return;
  const auto batch = std::size_t(job.latents_BNC.size(0));
  std::vector<DenoiserInput> pictures;
  for (const auto& branch : job.branches)
    for (auto& picture : with_all_timesteps(job, branch, schedule)) pictures.push_back(picture);
  if (modulate) job.modulations_SBM = in_batches(modulate(pictures), batch);
  if (!controls.modulate) return;
  pictures.resize(batch);
  for (std::size_t c = 0; c < pictures.front().controls.size(); ++c)
    job.modulations_of_controls_SBM.push_back(
        in_batches(controls.modulate(pictures, c), batch).front());
}

// The latents only show the batch: no step has set them yet.
void refine_text(DenoiseJob& job, const Schedule& schedule, const PredictAll& refine) {
  if (!refine) return;
  for (auto& branch : job.branches)
    job.set_step(branch, job.latents_BNC, schedule.timesteps.front());
  const auto refined = refine(job.branches);
  for (std::size_t b = 0; b < refined.size(); ++b) job.branches[b].refined_BTC = refined[b];
}

DenoiseResult denoise(const PredictAll& predict, const ScheduleConfig& config,
                      const Schedule& schedule, DenoiseJob job,
                      const std::function<void(const StepTaken&)>& on_step) {
  DenoiseResult result{.latents_BNC = job.latents_BNC, .first_velocity_BNC = {}};
  auto& latents = result.latents_BNC;
  for (std::size_t i = 0; i < schedule.timesteps.size(); ++i) {
    for (std::size_t b = 0; b < job.branches.size(); ++b) {
      job.set_step(job.branches[b], latents, schedule.timesteps[i]);
      job.branches[b].step = {
          .number = int(i), .timestep = schedule.timesteps[i], .branch = int(b)};
    }
    const auto done = part_done(config, job.guidance.way_from, schedule.timesteps[i]);
    auto branches = branches_at(job, done);
    set_modulations(job, branches, i);
    leave_controls(branches, job, i, schedule.timesteps.size());
    auto velocities = predict(branches);
    for (auto& velocity : velocities)
      velocity = velocity.narrow(1, 0, latents.size(1)).to(latents.scalar_type());
    if (i == 0) result.first_velocity_BNC = velocities.front();
    const auto velocity = guide(velocities, job.guidance, done);
    StepTaken taken{.done = int(i) + 1,
                    .latents_BNC = latents,
                    .velocity_BNC = velocity,
                    .sigma = schedule.sigmas[i]};
    latents = step(job, config.stochastic_sampling, latents, velocity, schedule.sigmas[i],
                   schedule.sigmas[i + 1]);
    const bool is_last = i + 1 == schedule.timesteps.size();
    if (job.kept)
      latents = with_kept(*job.kept, latents,
                          is_last ? std::nullopt : std::optional(schedule.sigmas[i + 1]));
    taken.next_BNC = latents;
    on_step(taken);
  }
  return result;
}

void check_same_start(const DenoiseJob& job, const Schedule& schedule, const Group& replica) {
  check_same(replica, at::tensor(schedule.sigmas), "noise levels");
  check_same(replica, at::tensor(schedule.timesteps), "timesteps");
  check_same(replica, job.latents_BNC, "initial latents");
  check_same(replica, job.branches.front().text.x_BLC, "embedded prompts");
}

}  // namespace braid
