#include "pipeline/sampling/solver.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "base/error.h"

namespace braid {
namespace {

bool is_of_diffusers(Sampler sampler) {
  return sampler == Sampler::kEuler || sampler == Sampler::kLcm;
}

// Halfway in log(sigma).
double middle(double s, double t) { return std::exp((std::log(s) + std::log(t)) / 2); }

// The noise levels are 0-dim tensors, as in the reference: products with v round to v's dtype.
Tensor lcm_step(const Tensor& x, const Tensor& v, float sigma, float next_sigma,
                const Tensor& noise) {
  const auto scalar = [](float value) { return at::scalar_tensor(value, at::kFloat); };
  const auto clean = x.to(at::kFloat) - scalar(sigma) * v;
  const auto next = (1 - scalar(next_sigma)) * clean + scalar(next_sigma) * noise;
  return next.to(v.scalar_type());
}

// Steps to a level below t, chosen so that fresh noise leads back up to t (ComfyUI's form for
// flows).
Tensor ancestral_step(const Tensor& x, const Tensor& x0, double s, double t,
                      const std::function<Tensor()>& draw) {
  if (t == 0) return x0;
  const double down = t * t / s;
  const double rest = (1 - t) / (1 - down);
  const double renewed = std::sqrt(std::max(0.0, t * t - down * down * rest * rest));
  const double kept = down / s;
  return rest * (kept * x + (1 - kept) * x0) + renewed * draw();
}

// ER-SDE's terms (Cui et al., 2023): Lambda = sigma / alpha, and ER-SDE-Solver's noise scale of it.
double ratio_of(double sigma) { return sigma / (1 - sigma); }
double noise_scale(double ratio) { return ratio * (std::exp(std::pow(ratio, 0.3)) + 10); }

// Sums of 1 / n and (L - from) / n over the step's ratios L, by 200 rectangles.
struct ErIntegrals {
  double plain = 0, linear = 0;
};
ErIntegrals er_integrals(double from, double to) {
  constexpr int kPoints = 200;
  const double width = (to - from) / kPoints;
  ErIntegrals sums;
  for (int k = 0; k < kPoints; ++k) {
    const double ratio = to - k * width;
    sums.plain += 1 / noise_scale(ratio);
    sums.linear += (ratio - from) / noise_scale(ratio);
  }
  return {.plain = -width * sums.plain, .linear = -width * sums.linear};
}

double root_or_zero(double square) { return square > 0 ? std::sqrt(square) : 0; }

}  // namespace

bool is_stochastic(Sampler sampler) {
  return sampler == Sampler::kEulerAncestral || sampler == Sampler::kErSde ||
         sampler == Sampler::kLcm;
}

std::vector<Evaluation> evaluations_of(Sampler sampler, const Schedule& schedule) {
  std::vector<Evaluation> all;
  const auto add = [&](float sigma, float timestep) {
    int row = 0;
    if (!all.empty()) row = all.back().row + (all.back().timestep == timestep ? 0 : 1);
    all.push_back({.sigma = sigma, .timestep = timestep, .row = row});
  };
  for (std::size_t i = 0; i < schedule.timesteps.size(); ++i) {
    add(schedule.sigmas[i], schedule.timesteps[i]);
    if (evaluations_per_step(sampler) == 1 || schedule.sigmas[i + 1] <= 0) continue;
    const bool ends_there = sampler == Sampler::kHeun && i + 1 < schedule.timesteps.size();
    const auto second = sampler == Sampler::kHeun
                            ? schedule.sigmas[i + 1]
                            : float(middle(schedule.sigmas[i], schedule.sigmas[i + 1]));
    add(second, ends_there ? schedule.timesteps[i + 1] : schedule.timestep_of(second));
  }
  return all;
}

Solver::Solver(Sampler sampler, Schedule schedule)
    : sampler_(sampler), schedule_(std::move(schedule)) {}

Tensor Solver::carried(const Tensor& x) const {
  return is_of_diffusers(sampler_) ? x : x.to(at::kFloat);
}

Tensor Solver::step(const Tensor& x, const std::function<Tensor(const Tensor& x)>& velocity_at,
                    const std::function<Tensor()>& draw) {
  const float sigma = schedule_.sigmas[number_], next_sigma = schedule_.sigmas[number_ + 1];
  s_ = sigma;
  t_ = next_sigma;
  const auto v = velocity_at(x);
  Tensor next;
  switch (sampler_) {
    case Sampler::kEuler:
      next = ops::euler_step(x, v, next_sigma - sigma);
      break;
    case Sampler::kLcm:
      next = lcm_step(x, v, sigma, next_sigma, draw());
      break;
    default:
      next = solved(x, v, velocity_at, draw);
  }
  ++number_;
  s_before_that_ = std::exchange(s_before_, s_);
  return next;
}

Tensor Solver::solved(const Tensor& x, const Tensor& v,
                      const std::function<Tensor(const Tensor& x)>& velocity_at,
                      const std::function<Tensor()>& draw) {
  if (sampler_ == Sampler::kHeun || sampler_ == Sampler::kDpm2) {
    const auto euler = x + (t_ - s_) * v;
    if (t_ == 0) return euler;
    if (sampler_ == Sampler::kHeun) return x + (t_ - s_) / 2 * (v + velocity_at(euler));
    return x + (t_ - s_) * velocity_at(x + (middle(s_, t_) - s_) * v);
  }
  const auto x0 = x - s_ * v;
  if (sampler_ == Sampler::kEulerAncestral) return ancestral_step(x, x0, s_, t_, draw);
  const auto next = sampler_ == Sampler::kErSde          ? er_sde(x, x0, draw)
                    : sampler_ == Sampler::kResMultistep ? res_multistep(x, x0)
                                                         : dpmpp_2m(x, x0);
  x0_before_ = x0;
  return next;
}

// DPM-Solver++(2M) (Lu et al., 2022), with lambda = -log(sigma).
Tensor Solver::dpmpp_2m(const Tensor& x, const Tensor& x0) const {
  if (t_ == 0) return x0;
  const double h = std::log(s_ / t_), share = -std::expm1(-h);
  if (number_ == 0) return t_ / s_ * x + share * x0;
  const double r = std::log(s_before_ / s_) / h;
  return t_ / s_ * x + share * ((1 + 1 / (2 * r)) * x0 - 1 / (2 * r) * x0_before_);
}

// RES (Zhang et al., 2023), two steps, as ComfyUI's res_multistep.
Tensor Solver::res_multistep(const Tensor& x, const Tensor& x0) const {
  if (number_ == 0 || t_ == 0) return x + (t_ - s_) / s_ * (x - x0);
  const double h = std::log(s_ / t_), c2 = -std::log(s_before_ / s_) / h;
  const double phi1 = std::expm1(-h) / -h, phi2 = (phi1 - 1) / -h;
  const double b2 = phi2 / c2, b1 = phi1 - b2;
  return std::exp(-h) * x + h * (b1 * x0 + b2 * x0_before_);
}

// ER-SDE-Solver-3 (Cui et al., 2023), as ComfyUI's er_sde.
Tensor Solver::er_sde(const Tensor& x, const Tensor& x0, const std::function<Tensor()>& draw) {
  if (t_ == 0) return x0;
  const double from = ratio_of(s_), to = ratio_of(t_), alpha = 1 - t_;
  const double r = noise_scale(to) / noise_scale(from), dt = to - from;
  auto next = alpha / (1 - s_) * r * x + alpha * (1 - r) * x0;
  if (number_ >= 1) {
    const auto sums = er_integrals(from, to);
    const auto d = (x0 - x0_before_) / (from - ratio_of(s_before_));
    next = next + alpha * (dt + sums.plain * noise_scale(to)) * d;
    if (number_ >= 2) {
      const auto u = (d - d_before_) / ((from - ratio_of(s_before_that_)) / 2);
      next = next + alpha * (dt * dt / 2 + sums.linear * noise_scale(to)) * u;
    }
    d_before_ = d;
  }
  return next + alpha * root_or_zero(to * to - from * from * r * r) * draw();
}

}  // namespace braid
