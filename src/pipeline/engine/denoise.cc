#include "pipeline/engine/denoise.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "pipeline/loaded/once_per_picture.h"
#include "pipeline/sampling/grids.h"
#include "pipeline/sampling/solver.h"

namespace braid {
namespace {

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

// What is evaluated, of a step's branches.
std::vector<DenoiserInput> guided(std::vector<DenoiserInput> branches, const DenoiseJob& job,
                                  double done) {
  const bool is_one = done > job.guidance.until && job.unguided == DenoiseJob::Unguided::kOneBranch;
  if (is_one) branches.resize(1);
  return branches;
}

void set_modulations_of_controls(const DenoiseJob& job, std::vector<DenoiserInput>& branches,
                                 std::int64_t row) {
  for (auto& branch : branches)
    for (std::size_t c = 0; c < job.modulations_of_controls_SBM.size(); ++c)
      branch.controls[c].modulations_BM = job.modulations_of_controls_SBM[c][row];
}

// Evaluation `number` of all.
StepInfo step_of(const std::vector<Evaluation>& all, int number) {
  const auto& one = all[std::size_t(number)];
  const auto behind = std::find_if(all.begin() + number, all.end(),
                                   [&](const Evaluation& other) { return other.row > one.row; });
  return {.number = number,
          .timestep = one.timestep,
          .next = behind == all.end() ? 0 : behind->timestep};
}

// The branches of an evaluation from `latents`; whether guidance is on does not count.
std::vector<DenoiserInput> branches_of(const DenoiseJob& job, StepInfo step,
                                       const Tensor& latents_BNC) {
  auto branches = job.branches;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    step.branch = int(b);
    branches[b].step = step;
    job.set_step(branches[b], latents_BNC, step.timestep);
  }
  return branches;
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
        evaluations_(evaluations_of(job_.sampler, schedule)),
        solver_(job_.sampler, schedule),
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
  Solver solver_;
  Tensor latents_, first_velocity_;
  int step_ = 0, evaluation_ = 0;  // the next ones
};

// Guided, in the dtype of x.
Tensor Steps::velocity_at(const Tensor& x) {
  const auto& at = evaluations_[std::size_t(evaluation_)];
  const auto seen = x.to(job_.latents_BNC.scalar_type());
  job_.branches = branches_of(job_, step_of(evaluations_, evaluation_), seen);
  const auto done = part_done(config_, job_.guidance.way_from, at.timestep);
  auto branches = guided(job_.branches, job_, done);
  set_modulations_of_controls(job_, branches, at.row);
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
  taken.next_BNC = latents_;
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

std::vector<std::vector<DenoiserInput>> branches_of_evaluations(const DenoiseJob& job,
                                                                const Schedule& schedule) {
  std::vector<std::vector<DenoiserInput>> all;
  const auto evaluations = evaluations_of(job.sampler, schedule);
  for (int i = 0; i < int(evaluations.size()); ++i)
    all.push_back(branches_of(job, step_of(evaluations, i), job.latents_BNC));
  return all;
}

// All pictures at once, as weights may have to come from disk. Branches share their controls.
void modulate_controls(DenoiseJob& job, const std::vector<std::vector<DenoiserInput>>& evaluations,
                       const Controls& controls) {
  if (!controls.modulate) return;
  std::vector<DenoiserInput> steps;
  for (const auto& branches : evaluations) steps.push_back(branches.front());
  const auto pictures = with_all_timesteps(steps);
  for (std::size_t c = 0; c < pictures.front().controls.size(); ++c)
    job.modulations_of_controls_SBM.push_back(as_batch(controls.modulate(pictures, c)));
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
