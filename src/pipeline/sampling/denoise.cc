#include "pipeline/sampling/denoise.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "pipeline/sampling/grids.h"
#include "pipeline/sampling/solver.h"

namespace braid {
namespace {

Sampler sampler_of(const DenoiseJob& job, const ScheduleConfig& config) {
  return job.sampler.value_or(sampling_limits(config).usual);
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

// Of the levels that are evaluated, in the order of their rows.
std::vector<float> timesteps_of_rows(const std::vector<Evaluation>& evaluations) {
  std::vector<float> timesteps;
  for (const auto& one : evaluations)
    if (one.row == int(timesteps.size())) timesteps.push_back(one.timestep);
  return timesteps;
}

float timestep_behind(const std::vector<float>& timesteps_of_rows, int row) {
  const auto next = std::size_t(row) + 1;
  return next < timesteps_of_rows.size() ? timesteps_of_rows[next] : 0;
}

void set_step(const DenoiseJob& job, DenoiserInput& branch, const Tensor& latents_BNC,
              const StepInfo& step) {
  branch.step = step;
  job.set_step(branch, latents_BNC, step.timestep);
}

// The pictures of a branch, each with the timesteps of all evaluations.
std::vector<DenoiserInput> with_all_timesteps(const DenoiseJob& job, DenoiserInput branch,
                                              const Schedule& schedule) {
  const auto levels =
      timesteps_of_rows(evaluations_of(job.sampler.value_or(Sampler::kEuler), schedule));
  std::vector<Tensor> timesteps, targets;
  for (int row = 0; row < int(levels.size()); ++row) {
    set_step(job, branch, job.latents_BNC,
             {.timestep = levels[std::size_t(row)], .next = timestep_behind(levels, row)});
    timesteps.push_back(branch.timestep_B);
    if (branch.target_timestep_B.defined()) targets.push_back(branch.target_timestep_B);
  }
  const auto timesteps_SB = at::stack(timesteps);
  const auto targets_SB = targets.empty() ? Tensor() : at::stack(targets);
  std::vector<DenoiserInput> pictures;
  for (std::int64_t i = 0; i < job.latents_BNC.size(0); ++i) {
    pictures.push_back(picture_of(branch, i));
    pictures.back().timestep_B = timesteps_SB.select(1, i);
    if (targets_SB.defined()) pictures.back().target_timestep_B = targets_SB.select(1, i);
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

void set_modulations(const DenoiseJob& job, std::vector<DenoiserInput>& branches,
                     std::int64_t row) {
  for (std::size_t b = 0; b < branches.size(); ++b) {
    auto& branch = branches[b];
    if (!job.modulations_SBM.empty()) branch.modulations_BM = job.modulations_SBM[b][row];
    for (std::size_t c = 0; c < job.modulations_of_controls_SBM.size(); ++c)
      branch.controls[c].modulations_BM = job.modulations_of_controls_SBM[c][row];
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

// The state of one batch between its steps.
class Steps {
 public:
  Steps(const PredictAll& predict, const ScheduleConfig& config, const Schedule& schedule,
        DenoiseJob job)
      : predict_(predict),
        config_(config),
        schedule_(schedule),
        job_(std::move(job)),
        evaluations_(evaluations_of(sampler_of(job_, config), schedule)),
        levels_(timesteps_of_rows(evaluations_)),
        solver_(sampler_of(job_, config), schedule),
        latents_(solver_.carried(job_.latents_BNC)) {}

  int count() const { return int(schedule_.timesteps.size()); }
  StepTaken take_next();
  DenoiseResult result() const;

 private:
  Tensor velocity_at(const Tensor& x_BNC);

  const PredictAll& predict_;
  const ScheduleConfig& config_;
  const Schedule& schedule_;
  DenoiseJob job_;
  std::vector<Evaluation> evaluations_;
  std::vector<float> levels_;
  Solver solver_;
  Tensor latents_, first_velocity_;
  int step_ = 0, evaluation_ = 0;  // the next ones
};

// Guided, in the dtype of x.
Tensor Steps::velocity_at(const Tensor& x) {
  const auto& at = evaluations_[std::size_t(evaluation_)];
  const auto seen = x.to(job_.latents_BNC.scalar_type());
  for (std::size_t b = 0; b < job_.branches.size(); ++b) {
    set_step(job_, job_.branches[b], seen,
             {.number = evaluation_,
              .timestep = at.timestep,
              .next = timestep_behind(levels_, at.row),
              .branch = int(b)});
  }
  const auto done = part_done(config_, job_.guidance.way_from, at.timestep);
  auto branches = branches_at(job_, done);
  set_modulations(job_, branches, at.row);
  leave_controls(branches, job_, std::size_t(step_), schedule_.timesteps.size());
  auto velocities = predict_(branches);
  for (auto& velocity : velocities) velocity = velocity.narrow(1, 0, x.size(1)).to(x.scalar_type());
  if (evaluation_ == 0) first_velocity_ = velocities.front();
  ++evaluation_;
  return guide(velocities, job_.guidance, done);
}

StepTaken Steps::take_next() {
  const auto i = std::size_t(step_);
  StepTaken taken{.done = step_ + 1, .latents_BNC = latents_, .sigma = schedule_.sigmas[i]};
  const auto evaluate = [&](const Tensor& x) {
    if (!taken.velocity_BNC.defined()) return taken.velocity_BNC = velocity_at(x);
    if (!job_.kept) return velocity_at(x);
    const auto sigma = evaluations_[std::size_t(evaluation_)].sigma;
    return velocity_at(with_kept(*job_.kept, x, sigma));
  };
  const auto draw = [&] { return job_.draw_for_step(job_.branches.front()).to(latents_.device()); };
  latents_ = solver_.step(latents_, evaluate, draw);
  ++step_;
  if (job_.kept)
    latents_ = with_kept(*job_.kept, latents_,
                         step_ == count() ? std::nullopt : std::optional(schedule_.sigmas[i + 1]));
  return taken;
}

DenoiseResult Steps::result() const {
  const auto dtype = job_.latents_BNC.scalar_type();
  return {.latents_BNC = latents_.to(dtype), .first_velocity_BNC = first_velocity_.to(dtype)};
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

void set_first_step(DenoiseJob& job, const Schedule& schedule) {
  for (std::size_t b = 0; b < job.branches.size(); ++b) {
    set_step(job, job.branches[b], job.latents_BNC,
             {.number = 0, .timestep = schedule.timesteps.front(), .branch = int(b)});
  }
}

// The latents only show the batch: no step has set them yet.
void refine_text(DenoiseJob& job, const Schedule& schedule, const PredictAll& refine) {
  if (!refine) return;
  set_first_step(job, schedule);
  const auto refined = refine(job.branches);
  for (std::size_t b = 0; b < refined.size(); ++b) job.branches[b].refined_BTC = refined[b];
}

DenoiseResult denoise(const PredictAll& predict, const ScheduleConfig& config,
                      const Schedule& schedule, DenoiseJob job,
                      const std::function<void(const StepTaken&)>& on_step) {
  Steps steps(predict, config, schedule, std::move(job));
  for (int i = 0; i < steps.count(); ++i) on_step(steps.take_next());
  return steps.result();
}

void check_same_start(const DenoiseJob& job, const Schedule& schedule, const Group& replica) {
  check_same(replica, at::tensor(schedule.sigmas), "noise levels");
  check_same(replica, at::tensor(schedule.timesteps), "timesteps");
  check_same(replica, job.latents_BNC, "initial latents");
  check_same(replica, job.branches.front().text.x_BLC, "embedded prompts");
}

}  // namespace braid
