// The loop from noise to latents.
#pragma once

#include "parallel/regions.h"
#include "pipeline/sampling/latents.h"
#include "pipeline/sampling/schedule.h"

namespace braid {

// One batch of pictures. B batch, N tokens, T text tokens, C widths.
struct DenoiseJob {
  Tensor latents_BNC;  // packed noise, in the dtype of the model
  Tensor image_ids_NA;
  Tensor text_BTC, pooled_BC;
  Tensor negative_text_BTC, negative_pooled_BC;  // undefined without true guidance
  double true_cfg = 1;
  double guidance_rescale = 0, cfg_norm_cap = 0;  // of true guidance; 0: off
  std::optional<double> guidance = {};            // for guidance-distilled models
  std::vector<at::Generator> generators = {};     // of the pictures, for stochastic sampling
};

struct DenoiseResult {
  Tensor latents_BNC;
  Tensor first_velocity_BNC;  // of the positive prompt
};

// Runs every step of `schedule`; `on_step` hears how many are done and may throw to end the loop.
// Equals FluxPipeline's loop in the order of its casts: the timestep is cast to the latents' dtype,
// then divided by 1000; the step itself is taken in float32.
DenoiseResult denoise(const PredictAll& predict, const ScheduleConfig& config,
                      const Schedule& schedule, const DenoiseJob& job,
                      const std::function<void(int done)>& on_step);

}  // namespace braid
