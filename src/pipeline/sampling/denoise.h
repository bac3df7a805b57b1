// The loop from noise to latents.
#pragma once

#include <ATen/core/Generator.h>

#include "nn/denoiser_part.h"
#include "parallel/regions.h"
#include "pipeline/sampling/guidance.h"
#include "pipeline/sampling/schedule.h"

namespace braid {

// The part of pictures that is not drawn: after each step it is what it was, with the noise of the
// next level. The mask is 1 where pictures are drawn.
struct KeptRegion {
  Tensor clean_BNC, noise_BNC, mask_BNC;
};

// sigma * noise + (1 - sigma) * clean, in the dtype of `clean` (diffusers' scale_noise).
Tensor with_noise(const Tensor& clean_BNC, const Tensor& noise_BNC, float sigma);

// One batch of pictures. B batch, N tokens, C width.
struct DenoiseJob {
  // Packed noise. Velocities are brought to its dtype, and lose what follows its N tokens: pads.
  Tensor latents_BNC;
  // What every step has in common: of the prompt and, with true guidance, of the negative prompt.
  std::vector<DenoiserInput> branches;
  // Gives an input a step's latents and timestep.
  std::function<void(DenoiserInput&, const Tensor& latents_BNC, float timestep)> set_step;
  TrueGuidance guidance = {};
  // What is evaluated where guidance is off: all branches where each has ranks of its own.
  enum class Unguided { kOneBranch, kAllBranches } unguided = Unguided::kOneBranch;
  std::vector<at::Generator> generators = {};  // of the pictures, for stochastic sampling
  std::optional<KeptRegion> kept = {};
  // Of each control of the branches, 0 to 1: the part of the steps in which it is followed.
  struct Span {
    double from, to;
  };
  std::vector<Span> followed = {};
  // What modulates the blocks in each step, [S B M] of each branch; and those of the ControlNet of
  // each control. None: steps make it themselves.
  std::vector<Tensor> modulations_SBM = {}, modulations_of_controls_SBM = {};
};

struct DenoiseResult {
  Tensor latents_BNC;
  Tensor first_velocity_BNC;  // of the positive prompt
};

// A step that was taken from `latents` at the noise level `sigma`; of those that only count steps
// there is only the number.
struct StepTaken {
  int done = 0;
  Tensor latents_BNC = {}, velocity_BNC = {};
  float sigma = 0;
};

// Before the first step: the ranks that work on the same pictures start from the same numbers, else
// throws as check_same() does.
void check_same_start(const DenoiseJob& job, const Schedule& schedule, const Group& replica);

// Before the first step: makes what modulates the blocks in all of them. Collective where
// `modulate` is.
void modulate_steps(DenoiseJob& job, const Schedule& schedule, const Modulate& modulate,
                    const Controls& controls);

// Runs every step of `schedule`; `on_step` hears of each and may throw to end the loop.
// The step itself is taken in float32, as in diffusers' schedulers.
DenoiseResult denoise(const PredictAll& predict, const ScheduleConfig& config,
                      const Schedule& schedule, DenoiseJob job,
                      const std::function<void(const StepTaken&)>& on_step);

}  // namespace braid
