#include "models/joy/model.h"

#include <ATen/ATen.h>

namespace braid {

Joy::Joy(const JoyConfig& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_layers)),
      attend_(std::move(attend)),
      inputs_(load_end<JoyInputs>(w, place_if(run_.has_first()), c)),
      blocks_(w / "double_blocks", run_, c),
      output_(load_end<JoyOutput>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

JoyState Joy::begin(const DenoiserInput& in, const Tensor& state) const {
  if (!inputs_) return JoyState::unpack(state, in.text.x_BLC.size(1));
  const auto x = (*inputs_)(in);
  if (in.watch) in.watch("img_in", x.image_BIC);
  if (in.watch) in.watch("text_embedder", x.text_BTC);
  return x;
}

Tensor Joy::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto rope = rope_of(images_and_text(in), config_.rope_axes());
  auto x = begin(in, state);
  JointTokens tokens{.image_BIC = x.image_BIC, .text_BTC = x.text_BTC};
  x.image_BIC.reset();
  x.text_BTC.reset();
  blocks_.for_each([&](std::int64_t i, const JoyBlock& block) {
    tokens = block(tokens, x.vectors_BVC, rope, attend_);
    if (!in.watch) return;
    const auto name = "double_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.image_BIC);
    in.watch(name + " text", tokens.text_BTC);
  });
  x.image_BIC = tokens.image_BIC;
  x.text_BTC = tokens.text_BTC;
  return output_ ? (*output_)(x, in.noise.x_BLC.size(1)) : x.pack();
}

}  // namespace braid
