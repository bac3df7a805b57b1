#include "models/flux2/model.h"

#include <ATen/ATen.h>

#include "nn/joined_tokens.h"

namespace braid {

Flux2::Flux2(const Flux2Config& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_double + c.num_single)),
      attend_(std::move(attend)),
      inputs_(load_end<Flux2Inputs>(w, place_if(run_.has_first()), c)),
      double_blocks_(w / "double_blocks", run_.of_kind(0, c.num_double), c),
      single_blocks_(w / "single_blocks", run_.of_kind(c.num_double, c.num_single), c),
      output_(load_end<Flux2Output>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

Flux2State Flux2::begin(const DenoiserInput& in, const Tensor& state) const {
  if (!inputs_) return Flux2State::unpack(state, in.text.x_BLC.size(1));
  const auto x = (*inputs_)(in);
  if (in.watch) in.watch("img_in", x.image_BIC);
  if (in.watch) in.watch("txt_in", x.text_BTC);
  return x;
}

void Flux2::run_double_blocks(Flux2State& x, const DenoiserInput& in, const Rope& rope) const {
  const auto modulations = x.double_modulations();
  JointTokens tokens{.image_BIC = x.image_BIC, .text_BTC = x.text_BTC};
  x.image_BIC.reset();
  x.text_BTC.reset();
  double_blocks_.for_each([&](std::int64_t i, const Flux2DoubleBlock& block) {
    tokens = block(tokens, modulations, rope, attend_);
    if (!in.watch) return;
    const auto name = "double_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.image_BIC);
    in.watch(name + " text", tokens.text_BTC);
  });
  x.image_BIC = tokens.image_BIC;
  x.text_BTC = tokens.text_BTC;
}

void Flux2::run_single_blocks(Flux2State& x, const DenoiserInput& in, const Rope& rope) const {
  const auto modulation = x.single_modulation();
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  auto tokens = joined_tokens(x.text_BTC, x.image_BIC);
  single_blocks_.for_each([&](std::int64_t i, const Flux2SingleBlock& block) {
    tokens = block(tokens, modulation, rope, attend_);
    if (!in.watch) return;
    const auto name = "single_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.narrow(1, num_text, num_image));
    in.watch(name + " text", tokens.narrow(1, 0, num_text));
  });
  x.image_BIC = tokens.narrow(1, num_text, num_image);
  x.text_BTC = tokens.narrow(1, 0, num_text);
}

Tensor Flux2::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto rope = rope_of(text_and_images(in), config_.rope_axes());
  auto x = begin(in, state);
  run_double_blocks(x, in, rope);
  if (!single_blocks_.empty()) run_single_blocks(x, in, rope);
  return output_ ? (*output_)(x, in.noise.x_BLC.size(1)) : x.pack();
}

}  // namespace braid
