// The loop from noise to latents.
#pragma once

#include <ATen/core/Generator.h>

#include "braid/sampling.h"
#include "nn/denoiser_part.h"
#include "parallel/regions.h"
#include "pipeline/sampling/guidance.h"
#include "pipeline/sampling/schedule.h"

namespace braid {

// The part of pictures that is not drawn: each step resets it, with noise of the next level. The
// mask is 1 where pictures are drawn.
struct KeptRegion {
  Tensor clean_BNC, noise_BNC, mask_BNC;
};

// sigma * noise + (1 - sigma) * clean, in the dtype of `clean` (diffusers' scale_noise).
Tensor with_noise(const Tensor& clean_BNC, const Tensor& noise_BNC, float sigma);

// One batch of pictures. B batch, N tokens, C width.
struct DenoiseJob {
  // Packed noise. Velocities are cast to its dtype and cut to its N tokens, dropping pads.
  Tensor latents_BNC;
  // What all steps share: of the prompt and, with true guidance, of the negative prompt.
  std::vector<DenoiserInput> branches;
  // Sets an input's latents and timestep for a step.
  std::function<void(DenoiserInput&, const Tensor& latents_BNC, float timestep)> set_step;
  TrueGuidance guidance = {};
  // What is evaluated while guidance is off: all branches if each has its own ranks.
  enum class Unguided { kOneBranch, kAllBranches } unguided = Unguided::kOneBranch;
  Sampler sampler = Sampler::kEuler;
  std::vector<at::Generator> generators = {};  // per picture
  // Noise for a stochastic step from this input: Family::draw_for_step with the generators.
  std::function<Tensor(const DenoiserInput&)> draw_for_step = {};
  std::optional<KeptRegion> kept = {};
  // Each control of the branches has a range of steps, 0 to 1, in which it is followed.
  struct Span {
    double from, to;
  };
  std::vector<Span> followed = {};
  // The modulations of each control's ControlNet at each level, by Evaluation::row. Empty:
  // evaluations compute their own.
  std::vector<Tensor> modulations_of_controls_SBM = {};
};

struct DenoiseResult {
  Tensor latents_BNC;
  Tensor first_velocity_BNC;  // for the positive prompt
};

// A step taken from `latents` at the noise level `sigma`, that of its first velocity; ranks without
// pictures set only `done`.
struct StepTaken {
  int done = 0;
  Tensor latents_BNC = {}, velocity_BNC = {};
  float sigma = 0;
  Tensor next_BNC = {};  // where it led; the next step starts from what is written there
};

// Checks, before the first step, that the ranks working on the same pictures start from the same
// numbers; throws as check_same() does.
void check_same_start(const DenoiseJob& job, const Schedule& schedule, const Group& replica);

// The branches of all evaluations as denoise() will make them, whether or not guidance is on. The
// latents only show the batch: no step has set them yet.
std::vector<std::vector<DenoiserInput>> branches_of_evaluations(const DenoiseJob& job,
                                                                const Schedule& schedule);

// Computes, before the first step, the modulations of the ControlNets in these evaluations
// (branches_of_evaluations). Collective if `controls.modulate` is.
void modulate_controls(DenoiseJob& job, const std::vector<std::vector<DenoiserInput>>& evaluations,
                       const Controls& controls);

// Runs every step of `schedule`; `on_step` is called after each and may throw to end the loop.
// Steps are computed in float32 (solver.h), the results have the dtype of the job's latents.
DenoiseResult denoise(const PredictAll& predict, const ScheduleConfig& config,
                      const Schedule& schedule, DenoiseJob job,
                      const std::function<void(const StepTaken&)>& on_step);

}  // namespace braid
