#include "models/krea2/ends.h"

#include <ATen/ATen.h>

#include "nn/embedder.h"

namespace braid {
namespace {

constexpr double kTimeScale = 1000;  // fixed in the reference class

}  // namespace

Krea2Inputs::Krea2Inputs(const Weights& w, const Krea2Config& c)
    : image_in_(w / "img_in", {.in = c.token_width, .out = c.image.hidden}),
      time_in_(w.once() / "time_embed" / "linear_1", {.in = c.sinusoid, .out = c.image.hidden}),
      time_out_(w.once() / "time_embed" / "linear_2",
                {.in = c.image.hidden, .out = c.image.hidden}),
      vectors_(w.once() / "time_mod_proj",
               {.in = c.image.hidden, .out = kKrea2BlockVectors * c.image.hidden}),
      sinusoid_(c.sinusoid),
      dtype_(w.dtype()) {}

Tensor Krea2Inputs::image(const DenoiserInput& in) const {
  return image_in_(in.noise.x_BLC.to(dtype_));
}

// The last layer takes the embedded timestep as it is, the blocks' vectors its GELU.
Tensor Krea2Inputs::condition(const DenoiserInput& in) const {
  const auto time_B = in.timestep_B.to(at::kFloat) * kTimeScale;
  const auto time = time_out_(time_in_.gelu(sinusoidal_embedding(time_B, sinusoid_).to(dtype_)));
  return at::cat({vectors_(ops::gelu(time)), time}, -1);
}

Krea2Output::Krea2Output(const Weights& w, const Krea2Config& c)
    : table_2C_((w / "final_layer").tensor("scale_shift_table", {2, c.image.hidden})),
      norm_C_(load_krea2_norm(w / "final_layer" / "norm", c.image.hidden)),
      out_(w / "final_layer" / "linear", {.in = c.image.hidden, .out = c.token_width}),
      norm_eps_(c.norm_eps) {}

Tensor Krea2Output::operator()(const Tensor& image_BIC, const Tensor& vector_BC) const {
  const auto parts = (vector_BC.unsqueeze(1) + table_2C_).chunk(2, 1);
  const Modulation m{.shift = parts[1], .scale = parts[0], .gate = {}};
  return out_(ops::modulated_rms_norm(image_BIC, norm_C_, m, norm_eps_));
}

}  // namespace braid
