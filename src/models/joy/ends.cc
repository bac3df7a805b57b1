#include "models/joy/ends.h"

#include <ATen/ATen.h>

#include "nn/joined_tokens.h"

namespace braid {
namespace {

constexpr std::int64_t kSinusoid = 256, kVectors = 6, kPixels = 4;  // latents per patch
constexpr double kLastNormEps = 1e-6;

Embedder load_time(const Weights& w, const JoyConfig& c) {
  return {Linear(w / "linear_1", {.in = kSinusoid, .out = c.hidden}),
          Linear(w / "linear_2", {.in = c.hidden, .out = c.hidden})};
}

}  // namespace

Tensor JoyState::pack() const { return at::cat({image_BIC, text_BTC, vectors_BVC}, 1); }

JoyState JoyState::unpack(const Tensor& packed, std::int64_t num_text) {
  const auto num_image = packed.size(1) - num_text - kVectors;
  return {.image_BIC = packed.narrow(1, 0, num_image),
          .text_BTC = packed.narrow(1, num_image, num_text),
          .vectors_BVC = packed.narrow(1, num_image + num_text, kVectors)};
}

JoyInputs::JoyInputs(const Weights& w, const JoyConfig& c)
    : patch_weight_((w / "img_in").tensor("weight", {c.hidden, c.latent_channels, 1, 2, 2})),
      patch_bias_((w / "img_in").tensor("bias", {c.hidden})),
      time_in_(load_time((w / "condition_embedder" / "time_embedder").as(at::kFloat), c)),
      time_proj_(w / "condition_embedder" / "time_proj",
                 {.in = c.hidden, .out = kVectors * c.hidden}),
      text_in_(w / "condition_embedder" / "text_embedder" / "linear_1",
               {.in = c.text_width, .out = c.hidden}),
      text_out_(w / "condition_embedder" / "text_embedder" / "linear_2",
                {.in = c.hidden, .out = c.hidden}) {}

Tensor JoyInputs::patches_in(const Tensor& x_BLC) const {
  return at::linear(x_BLC, patch_weight_.flatten(1), patch_bias_);
}

JoyState JoyInputs::operator()(const DenoiserInput& in) const {
  const auto time = time_in_(sinusoidal_embedding(in.timestep_B, kSinusoid));
  const auto vectors = time_proj_(at::silu(time.to(in.text.x_BLC.scalar_type())));
  return {.image_BIC = patches_in(image_tokens(in)),
          .text_BTC = text_out_(text_in_.gelu(in.text.x_BLC)),
          .vectors_BVC = vectors.unflatten(-1, {kVectors, -1})};
}

JoyOutput::JoyOutput(const Weights& w, const JoyConfig& c)
    : out_(w / "proj_out", {.in = c.hidden, .out = kPixels * c.out_channels}),
      channels_(c.out_channels) {}

// The last layer returns the latents of a patch one after another, each with all its channels.
Tensor JoyOutput::operator()(const JoyState& x, std::int64_t num_noise) const {
  const auto noise_BNC = x.image_BIC.narrow(1, 0, num_noise);
  const auto wide = noise_BNC.to(at::kFloat);
  const auto normed = at::layer_norm(wide, {wide.size(-1)}, {}, {}, kLastNormEps);
  const auto made = out_(normed.to(noise_BNC.scalar_type()));
  return made.unflatten(-1, {kPixels, channels_}).transpose(-1, -2).flatten(-2);
}

}  // namespace braid
