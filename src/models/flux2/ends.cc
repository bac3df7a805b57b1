#include "models/flux2/ends.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/joined_tokens.h"

namespace braid {
namespace {

// The vectors in order: shift, scale and gate for the image's attention, its MLP, the text's
// attention, its MLP, and single blocks; the output's vector is last.
constexpr std::int64_t kImage = 0, kText = 6, kSingle = 12, kOutput = 15, kVectors = 16;

Modulation modulation_from(const Tensor& vectors_BVC, std::int64_t first) {
  return {.shift = vectors_BVC.narrow(1, first, 1),
          .scale = vectors_BVC.narrow(1, first + 1, 1),
          .gate = vectors_BVC.narrow(1, first + 2, 1)};
}

SideModulations modulations_from(const Tensor& vectors_BVC, std::int64_t first) {
  return {.attention = modulation_from(vectors_BVC, first),
          .mlp = modulation_from(vectors_BVC, first + 3)};
}

Linear load_unbiased(const Weights& w, std::int64_t in, std::int64_t out) {
  return {w, {.in = in, .out = out, .bias = Bias::kNo}};
}

Embedder load_embedder(const Weights& w, const Flux2Config& c) {
  return {load_unbiased(w / "in_layer", c.sinusoid, c.hidden()),
          load_unbiased(w / "out_layer", c.hidden(), c.hidden())};
}

}  // namespace

JointModulations Flux2State::double_modulations() const {
  return {.image = modulations_from(vectors_BVC, kImage),
          .text = modulations_from(vectors_BVC, kText)};
}

Modulation Flux2State::single_modulation() const { return modulation_from(vectors_BVC, kSingle); }

Tensor Flux2State::output_vector_BC() const { return vectors_BVC.select(1, kOutput); }

Tensor Flux2State::pack() const { return at::cat({text_BTC, image_BIC, vectors_BVC}, 1); }

Flux2State Flux2State::unpack(const Tensor& packed, std::int64_t num_text) {
  const auto num_image = packed.size(1) - num_text - kVectors;
  return {.image_BIC = packed.narrow(1, num_text, num_image),
          .text_BTC = packed.narrow(1, 0, num_text),
          .vectors_BVC = packed.narrow(1, num_text + num_image, kVectors)};
}

Flux2Inputs::Flux2Inputs(const Weights& w, const Flux2Config& c)
    : image_in_(load_unbiased(w / "img_in", c.in_channels, c.hidden())),
      text_in_(load_unbiased(w / "txt_in", c.text_width, c.hidden())),
      time_in_(load_embedder(w / "time_in", c)),
      image_mod_(load_unbiased(w / "double_stream_modulation_img" / "lin", c.hidden(),
                               (kText - kImage) * c.hidden())),
      text_mod_(load_unbiased(w / "double_stream_modulation_txt" / "lin", c.hidden(),
                              (kSingle - kText) * c.hidden())),
      single_mod_(load_unbiased(w / "single_stream_modulation" / "lin", c.hidden(),
                                (kOutput - kSingle) * c.hidden())),
      sinusoid_(c.sinusoid) {
  if (c.guidance_embeds) guidance_in_ = load_embedder(w / "guidance_in", c);
}

// silu of the conditioning vector [B C]. Timestep and guidance are multiplied in the model's dtype,
// like the reference: a guidance of 2.5 becomes 2496 in bfloat16.
Tensor Flux2Inputs::condition(const DenoiserInput& in) const {
  const auto dtype = in.noise.x_BLC.scalar_type();
  const auto embed = [&](const Embedder& embedder, const Tensor& t_B) {
    return embedder(sinusoidal_embedding(t_B.to(dtype) * 1000, sinusoid_).to(dtype));
  };
  check(in.guidance_B.defined() == guidance_in_.has_value(), "this transformer was ",
        guidance_in_ ? "" : "not ", "distilled with guidance, its input ",
        in.guidance_B.defined() ? "has" : "lacks", " a guidance scale");
  const auto time = embed(time_in_, in.timestep_B);
  return at::silu(guidance_in_ ? time + embed(*guidance_in_, in.guidance_B) : time);
}

Flux2State Flux2Inputs::operator()(const DenoiserInput& in) const {
  const auto vec_BC = condition(in);
  const auto vectors =
      at::cat({image_mod_(vec_BC), text_mod_(vec_BC), single_mod_(vec_BC), vec_BC}, -1);
  return {.image_BIC = image_in_(image_tokens(in)),
          .text_BTC = text_in_(in.text.x_BLC),
          .vectors_BVC = vectors.unflatten(-1, {kVectors, -1})};
}

Flux2Output::Flux2Output(const Weights& w, const Flux2Config& c)
    : mod_(load_unbiased(w / "final_layer" / "adaLN_modulation" / "1", c.hidden(), 2 * c.hidden())),
      out_(load_unbiased(w / "final_layer" / "linear", c.hidden(), c.out_channels)) {}

Tensor Flux2Output::operator()(const Flux2State& x, std::int64_t num_noise) const {
  const auto mod = mod_(x.output_vector_BC()).unsqueeze(1).chunk(2, -1);
  const auto noise_BNC = x.image_BIC.narrow(1, 0, num_noise);
  return out_(ops::modulated_norm(noise_BNC, {.shift = mod[0], .scale = mod[1], .gate = {}}));
}

}  // namespace braid
