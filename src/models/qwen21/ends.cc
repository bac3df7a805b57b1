#include "models/qwen21/ends.h"

#include <ATen/ATen.h>

#include "nn/embedder.h"
#include "nn/norm.h"

namespace braid {
namespace {

constexpr double kQwen21TimeScale = 1000;      // fixed in the reference class
constexpr std::int64_t kQwen21Sinusoid = 256;  // likewise

LinearShape unbiased(std::int64_t in, std::int64_t out) {
  return {.in = in, .out = out, .bias = Bias::kNo};
}

// Scale and gate of attention, then of the MLP; a gate is the tanh of what the layer makes.
Tensor with_bounded_gates(const Tensor& vectors_SV) {
  auto parts = vectors_SV.chunk(kQwen21BlockVectors, -1);
  for (const std::size_t gate : {1, 3}) parts[gate] = parts[gate].tanh();
  return at::cat(parts, -1);
}

}  // namespace

Qwen21Inputs::Qwen21Inputs(const Weights& w, const Qwen21Config& c)
    : image_in_(w / "img_in", unbiased(c.token_width, c.hidden)),
      text_norm_((w / "txt_in" / "text_norm").as(at::kFloat).tensor("weight", {c.text_width})),
      text_in_(w / "txt_in" / "in_layer", unbiased(c.text_width, c.hidden)),
      text_out_(w / "txt_in" / "out_layer", unbiased(c.hidden, c.hidden)),
      time_in_(w.once() / "time_text_embed" / "timestep_embedder" / "linear_1",
               unbiased(kQwen21Sinusoid, c.hidden)),
      time_out_(w.once() / "time_text_embed" / "timestep_embedder" / "linear_2",
                unbiased(c.hidden, c.hidden)),
      vectors_(w.once() / "modulation", unbiased(c.hidden, kQwen21BlockVectors * c.hidden)),
      last_scale_(w.once() / "norm_out" / "linear", unbiased(c.hidden, c.hidden)),
      norm_eps_(c.norm_eps),
      causal_condition_(c.causal_condition),
      dtype_(w.dtype()) {}

Tensor Qwen21Inputs::embedded_text(const Tensor& text_BTC) const {
  return text_out_(text_in_.gelu(ops::zero_centred_rms_norm(text_BTC, text_norm_, norm_eps_)));
}

Tensor Qwen21Inputs::tokens(const DenoiserInput& in) const {
  std::vector<Tensor> runs;
  if (in.text.x_BLC.size(1) > 0) runs.push_back(embedded_text(in.text.x_BLC.to(dtype_)));
  for (const auto& reference : in.references) runs.push_back(image_in_(reference.x_BLC.to(dtype_)));
  if (in.noise.x_BLC.size(1) > 0 || runs.empty())
    runs.push_back(image_in_(in.noise.x_BLC.to(dtype_)));
  return at::cat(runs, 1);
}

// The prefix has timestep 0 in each step, unless it is told the step's.
Tensor Qwen21Inputs::condition(const DenoiserInput& in) const {
  const auto time_S = in.timestep_B.to(dtype_);
  const auto times = at::cat({time_S, at::zeros({1}, time_S.options())}).to(at::kFloat);
  const auto sinusoid = sinusoidal_embedding(times * kQwen21TimeScale, kQwen21Sinusoid).to(dtype_);
  const auto time = at::silu(time_out_(at::silu(time_in_(sinusoid))));
  const auto steps = time_S.size(0);
  const auto vectors = with_bounded_gates(vectors_(time));
  const auto of_image = vectors.narrow(0, 0, steps);
  const auto of_prefix =
      causal_condition_ ? vectors.narrow(0, steps, 1).expand({steps, -1}) : of_image;
  return at::cat({of_image, of_prefix, last_scale_(time.narrow(0, 0, steps))}, -1);
}

Qwen21Output::Qwen21Output(const Weights& w, const Qwen21Config& c)
    : out_(w / "proj_out", unbiased(c.hidden, c.token_width)), norm_eps_(c.norm_eps) {}

Tensor Qwen21Output::operator()(const Tensor& image_BIC, const Tensor& scale_BC) const {
  const auto scale = scale_BC.unsqueeze(1);
  return out_(modulated_norm(
      image_BIC, {.shift = at::zeros_like(scale), .scale = scale, .gate = {}}, norm_eps_));
}

}  // namespace braid
