#include "models/qwen_image/ends.h"

#include <ATen/ATen.h>

#include "nn/joined_tokens.h"

namespace braid {
namespace {

// Fixed in the reference class.
constexpr std::int64_t kSinusoidWidth = 256;
constexpr double kTimestepsOfSigma = 1000, kTextNormEps = 1e-6;

}  // namespace

QwenImageInputs::QwenImageInputs(const Weights& w, const QwenImageConfig& c)
    : image_in_(w / "img_in", {.in = c.in_channels, .out = c.hidden()}),
      text_norm_(w / "txt_norm", c.text_width, kTextNormEps),
      text_in_(w / "txt_in", {.in = c.text_width, .out = c.hidden()}),
      time_in_(Linear(w.once() / "time_in" / "in_layer", {.in = kSinusoidWidth, .out = c.hidden()}),
               Linear(w.once() / "time_in" / "out_layer", {.in = c.hidden(), .out = c.hidden()})),
      additions_2C_(c.draws == QwenImageDraws::kLayers
                        ? (w.once() / "time_in" / "addition").tensor("weight", {2, c.hidden()})
                        : Tensor()),
      reference_time_(c.reference_time),
      dtype_(w.dtype()) {}

// The pipeline asks for the first of both additions.
Tensor QwenImageInputs::embedded_time(const Tensor& sigma_S) const {
  const auto sinusoid = sinusoidal_embedding(sigma_S, kSinusoidWidth, kTimestepsOfSigma);
  const auto embedded = time_in_(sinusoid.to(dtype_));
  return at::silu(additions_2C_.defined() ? embedded + additions_2C_.select(0, 0) : embedded);
}

Tensor QwenImageInputs::condition(const DenoiserInput& in) const {
  const auto sigma_S = in.timestep_B.to(dtype_);
  const auto of_steps = embedded_time(sigma_S);
  if (reference_time_ == ReferenceTime::kOfStep) return of_steps;
  const auto of_zero = embedded_time(at::zeros({1}, sigma_S.options()));
  return at::cat({of_steps, of_zero.expand({sigma_S.size(0), -1})}, -1);
}

FluxState QwenImageInputs::operator()(const DenoiserInput& in) const {
  return {.image_BIC = image_in_(image_tokens(in)),
          .text_BTC = text_in_(text_norm_(in.text.x_BLC))};
}

}  // namespace braid
