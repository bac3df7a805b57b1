#include "models/flux/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kSinusoid = 256;  // width of an embedded timestep or guidance scale

template <class Block>
std::vector<Block> load_blocks(const Weights& w, std::int64_t count, const FluxConfig& config) {
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < count; ++i) blocks.emplace_back(w / i, config);
  return blocks;
}

}  // namespace

Tensor sinusoidal_embedding(const Tensor& t_B, std::int64_t width) {
  const auto half = width / 2;
  const auto steps = at::arange(0, half, t_B.options().dtype(at::kFloat));
  const auto frequencies = at::exp(-std::log(10000.0) * steps / double(half));
  const auto angles = t_B.to(at::kFloat).unsqueeze(1) * frequencies;
  return at::cat({angles.cos(), angles.sin()}, -1);
}

FluxEmbedder::FluxEmbedder(const Weights& w, std::int64_t in, std::int64_t hidden)
    : in_(w / "in_layer", {.in = in, .out = hidden}),
      out_(w / "out_layer", {.in = hidden, .out = hidden}) {}

Tensor FluxEmbedder::operator()(const Tensor& x_BC) const { return out_(at::silu(in_(x_BC))); }

Flux::Flux(const FluxConfig& c, const Weights& w, Attend attend)
    : config_(c),
      attend_(std::move(attend)),
      image_in_(w / "img_in", {.in = c.in_channels, .out = c.hidden()}),
      text_in_(w / "txt_in", {.in = c.text_width, .out = c.hidden()}),
      time_in_(w / "time_in", kSinusoid, c.hidden()),
      pooled_in_(w / "vector_in", c.pooled_width, c.hidden()),
      double_blocks_(load_blocks<FluxDoubleBlock>(w / "double_blocks", c.num_double, c)),
      single_blocks_(load_blocks<FluxSingleBlock>(w / "single_blocks", c.num_single, c)),
      final_mod_(w / "final_layer" / "adaLN_modulation" / "1",
                 {.in = c.hidden(), .out = 2 * c.hidden()}),
      final_(w / "final_layer" / "linear", {.in = c.hidden(), .out = c.out_channels}) {
  if (c.guidance_embeds) guidance_in_.emplace(w / "guidance_in", kSinusoid, c.hidden());
  w.finish();
}

// Timestep and guidance are multiplied in the dtype of the model, as the reference does: a guidance
// of 3.5 is 3504 in bfloat16.
Tensor Flux::condition(const DenoiserInput& in) const {
  const auto dtype = in.pooled_BC.scalar_type();
  const auto embed = [&](const FluxEmbedder& embedder, const Tensor& t_B) {
    return embedder(sinusoidal_embedding(t_B.to(dtype) * 1000, kSinusoid).to(dtype));
  };
  check(in.guidance_B.has_value() == guidance_in_.has_value(), "this transformer was ",
        guidance_in_ ? "" : "not ", "distilled with guidance, its input ",
        in.guidance_B ? "has" : "lacks", " a guidance scale");
  auto vec = embed(time_in_, in.timestep_B);
  if (guidance_in_) vec = vec + embed(*guidance_in_, *in.guidance_B);
  return at::silu(vec + pooled_in_(in.pooled_BC));
}

Tensor Flux::operator()(const DenoiserInput& in) const {
  const auto vec = condition(in);
  const auto rope =
      rope_table(at::cat({in.text_ids_TA, in.image_ids_IA}), {.widths = config_.axes});

  const auto watch = [&](const std::string& where, const Tensor& tokens) {
    if (in.watch) in.watch(where, tokens);
  };

  FluxDoubleBlock::Tokens tokens{.image_BIC = image_in_(in.image_BIC),
                                 .text_BTC = text_in_(in.text_BTC)};
  watch("img_in", tokens.image_BIC);
  watch("txt_in", tokens.text_BTC);
  for (std::size_t i = 0; i < double_blocks_.size(); ++i) {
    tokens = double_blocks_[i](tokens, vec, rope, attend_);
    watch("double_blocks." + std::to_string(i) + " image", tokens.image_BIC);
    watch("double_blocks." + std::to_string(i) + " text", tokens.text_BTC);
  }

  const auto num_text = tokens.text_BTC.size(1), num_image = tokens.image_BIC.size(1);
  auto x = at::cat({tokens.text_BTC, tokens.image_BIC}, 1);
  tokens = {};
  for (std::size_t i = 0; i < single_blocks_.size(); ++i) {
    x = single_blocks_[i](x, vec, rope, attend_);
    watch("single_blocks." + std::to_string(i) + " image", x.narrow(1, num_text, num_image));
    watch("single_blocks." + std::to_string(i) + " text", x.narrow(1, 0, num_text));
  }

  const auto mod = final_mod_(vec).unsqueeze(1).chunk(2, -1);
  const auto image = x.narrow(1, num_text, num_image);
  return final_(ops::modulated_norm(image, {.shift = mod[0], .scale = mod[1], .gate = {}}));
}

}  // namespace braid
