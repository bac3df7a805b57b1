#include "models/flux/ends.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/joined_tokens.h"

namespace braid {
namespace {

constexpr std::int64_t kSinusoid = 256;  // width of an embedded timestep or guidance scale

Embedder load_embedder(const Weights& w, std::int64_t in, std::int64_t hidden) {
  return {Linear(w / "in_layer", {.in = in, .out = hidden}),
          Linear(w / "out_layer", {.in = hidden, .out = hidden})};
}

}  // namespace

const Tensor* residual_behind(const std::vector<Tensor>& residuals, std::int64_t i,
                              std::int64_t count) {
  if (residuals.empty()) return nullptr;
  const auto size = std::int64_t(residuals.size());
  return &residuals[std::size_t(i / ((count + size - 1) / size))];
}

Tensor FluxState::pack() const { return at::cat({text_BTC, image_BIC}, 1); }

FluxState FluxState::unpack(const Tensor& packed, std::int64_t num_text) {
  return {.image_BIC = packed.narrow(1, num_text, packed.size(1) - num_text),
          .text_BTC = packed.narrow(1, 0, num_text)};
}

FluxInputs::FluxInputs(const Weights& w, const FluxConfig& c)
    : image_in_(w / "img_in", {.in = c.in_channels, .out = c.hidden()}),
      text_in_(w / "txt_in", {.in = c.text_width, .out = c.hidden()}),
      time_in_(load_embedder(w.once() / "time_in", kSinusoid, c.hidden())),
      pooled_in_(load_embedder(w.once() / "vector_in", c.pooled_width, c.hidden())) {
  if (c.guidance_embeds)
    guidance_in_ = load_embedder(w.once() / "guidance_in", kSinusoid, c.hidden());
}

// Timestep and guidance are multiplied in the model's dtype, like the reference: a guidance of 3.5
// becomes 3504 in bfloat16.
Tensor FluxInputs::condition(const DenoiserInput& in) const {
  const auto dtype = in.pooled_BC.scalar_type();
  const auto embed = [&](const Embedder& embedder, const Tensor& t_B) {
    return embedder(sinusoidal_embedding(t_B.to(dtype) * 1000, kSinusoid).to(dtype));
  };
  check(in.guidance_B.defined() == guidance_in_.has_value(), "this transformer was ",
        guidance_in_ ? "" : "not ", "distilled with guidance, its input ",
        in.guidance_B.defined() ? "has" : "lacks", " a guidance scale");
  auto vec = embed(time_in_, in.timestep_B);
  if (guidance_in_) vec = vec + embed(*guidance_in_, in.guidance_B);
  return at::silu(vec + pooled_in_(in.pooled_BC));
}

FluxState FluxInputs::operator()(const DenoiserInput& in) const {
  return {.image_BIC = image_in_(image_tokens(in)), .text_BTC = text_in_(in.text.x_BLC)};
}

FluxOutput::FluxOutput(const Weights& w, const FluxConfig& c)
    : mod_(w.once() / "final_layer" / "adaLN_modulation" / "1",
           {.in = c.hidden(), .out = 2 * c.hidden()}),
      out_(w / "final_layer" / "linear", {.in = c.hidden(), .out = c.out_channels}) {}

Tensor FluxOutput::operator()(const FluxState& x, const Tensor& modulations_BM,
                              std::int64_t num_noise) const {
  const auto mod = modulations_BM.unsqueeze(1).chunk(2, -1);
  const auto noise_BNC = x.image_BIC.narrow(1, 0, num_noise);
  return out_(ops::modulated_norm(noise_BNC, {.shift = mod[0], .scale = mod[1], .gate = {}}));
}

}  // namespace braid
