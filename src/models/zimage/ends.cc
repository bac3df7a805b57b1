#include "models/zimage/ends.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr std::int64_t kSinusoid = 256, kTimeHidden = 1024;  // fixed in the reference class

Tensor with_pads(const Tensor& x_BLC, const Tensor& is_pad_L, const Tensor& pad_1C) {
  return is_pad_L.defined() ? at::where(is_pad_L.unsqueeze(-1), pad_1C, x_BLC) : x_BLC;
}

}  // namespace

Tensor ZImageState::pack() const { return at::cat({text_BTC, image_BIC}, 1); }

ZImageState ZImageState::unpack(const Tensor& packed, std::int64_t num_text) {
  return {.image_BIC = packed.narrow(1, num_text, packed.size(1) - num_text),
          .text_BTC = packed.narrow(1, 0, num_text)};
}

ZImageInputs::ZImageInputs(const Weights& w, const ZImageConfig& c)
    : image_in_(w / "x_embedder", {.in = c.token_width(), .out = c.hidden}),
      text_in_(w.once() / "cap_embedder" / 1, {.in = c.text_width, .out = c.hidden}),
      text_norm_(w.once() / "cap_embedder" / "norm", c.text_width, c.norm_eps),
      time_in_(Linear(w.once() / "t_embedder" / "mlp" / 0, {.in = kSinusoid, .out = kTimeHidden}),
               Linear(w.once() / "t_embedder" / "mlp" / 2,
                      {.in = kTimeHidden, .out = c.condition_width()})),
      image_pad_1C_(w.tensor("x_pad_token", {1, c.hidden})),
      text_pad_1C_(w.tensor("cap_pad_token", {1, c.hidden})),
      time_scale_(c.time_scale) {}

// Latents arrive in float32.
Tensor ZImageInputs::image(const DenoiserInput& in) const {
  const auto image = image_in_(in.noise.x_BLC.to(image_pad_1C_.scalar_type()));
  return with_pads(image, in.noise.is_pad_L, image_pad_1C_);
}

Tensor ZImageInputs::text(const DenoiserInput& in) const {
  const auto text = text_in_(text_norm_(in.text.x_BLC.to(text_pad_1C_.scalar_type())));
  return with_pads(text, in.text.is_pad_L, text_pad_1C_);
}

// Timesteps arrive in float32.
Tensor ZImageInputs::condition(const DenoiserInput& in) const {
  const auto time_B = in.timestep_B.to(at::kFloat) * time_scale_;
  return time_in_(sinusoidal_embedding(time_B, kSinusoid).to(image_pad_1C_.scalar_type()));
}

ZImageOutput::ZImageOutput(const Weights& w, const ZImageConfig& c)
    : scale_(w.once() / "final_layer" / "adaLN_modulation" / 1,
             {.in = c.condition_width(), .out = c.hidden}),
      out_(w / "final_layer" / "linear", {.in = c.hidden, .out = c.token_width()}) {}

void ZImageOutput::add_to(ModulationsMade& made) const {
  made.add([&](const Tensor& condition_SE) { return scale_(at::silu(condition_SE)); });
}

Tensor ZImageOutput::operator()(const ZImageState& x, const Tensor& modulations_BM) const {
  const auto scale = modulations_BM.unsqueeze(1);
  const Modulation m{.shift = at::zeros_like(scale), .scale = scale, .gate = {}};
  return out_(ops::modulated_norm(x.image_BIC, m));
}

}  // namespace braid
