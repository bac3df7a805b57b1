// Samplers: what leads from one noise level to the next, given velocities at one or two levels.
//
// Latents x at the level s hold (1 - s) of the picture and s of noise, so the velocity
// v = d x / d s = (x - x0) / s gives the picture x0 = x - s v that the model expects. Steps go from
// s to t < s. Euler's and LCM's are taken as by diffusers' scheduler, in float32 and rounded to the
// velocity's dtype. The others keep x in float32 between steps, as ComfyUI does; their factors are
// computed in float64.
#pragma once

#include <functional>
#include <vector>

#include "braid/sampling.h"
#include "ops/ops.h"
#include "pipeline/sampling/schedule.h"

namespace braid {

// One evaluation of the denoiser.
struct Evaluation {
  float sigma, timestep;
  int row = 0;  // of what is computed once per level: neighbours of one level share it
};
// All of them, in order. The last step goes to the picture in one.
std::vector<Evaluation> evaluations_of(Sampler sampler, const Schedule& schedule);

// Whether it draws noise in each step.
bool is_stochastic(Sampler sampler);

class Solver {
 public:
  Solver(Sampler sampler, Schedule schedule);

  // The latents as steps take and give them: in float32, but for Euler and LCM.
  Tensor carried(const Tensor& x) const;

  // The latents after the next step. `velocity_at` is called for each of its evaluations, in order;
  // `draw`, for a stochastic sampler, gives float32 noise in the shape of x.
  Tensor step(const Tensor& x, const std::function<Tensor(const Tensor& x)>& velocity_at,
              const std::function<Tensor()>& draw);

 private:
  Tensor solved(const Tensor& x, const Tensor& v,
                const std::function<Tensor(const Tensor& x)>& velocity_at,
                const std::function<Tensor()>& draw);
  Tensor dpmpp_2m(const Tensor& x, const Tensor& x0) const;
  Tensor res_multistep(const Tensor& x, const Tensor& x0) const;
  Tensor er_sde(const Tensor& x, const Tensor& x0, const std::function<Tensor()>& draw);

  Sampler sampler_;
  Schedule schedule_;
  std::size_t number_ = 0;       // of the next step
  double s_ = 0, t_ = 0;         // its levels
  double s_before_ = 0;          // of the step before
  double s_before_that_ = 0;     // of the step before that
  Tensor x0_before_, d_before_;  // of the step before: the picture expected, and its slope
};

}  // namespace braid
