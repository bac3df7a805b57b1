#include "models/qwen_image/model.h"

#include <ATen/ATen.h>

namespace braid {

QwenImage::QwenImage(const QwenImageConfig& c, const Weights& w, Attend attend,
                     std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_layers)),
      attend_(std::move(attend)),
      inputs_(load_end<QwenImageInputs>(w, place_if(run_.has_first()), c)),
      modulators_(w, run_, c),
      blocks_(w / "double_blocks", run_, blocks_of(c)),
      output_(load_end<FluxOutput>(w, place_if(run_.has_last()), blocks_of(c))) {
  w.finish();
}

FluxState QwenImage::begin(const DenoiserInput& in, const Tensor& state) const {
  if (!inputs_) return FluxState::unpack(state, in.text.x_BLC.size(1));
  const auto x = (*inputs_)(in);
  if (in.watch) in.watch("img_in", x.image_BIC);
  if (in.watch) in.watch("txt_in", x.text_BTC);
  return x;
}

Tensor QwenImage::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto rope = rope_of(text_and_images(in), config_.rope_axes());
  auto x = begin(in, state);
  Modulations mods(in.modulations_BM);
  const auto num_noise = in.noise.x_BLC.size(1);
  JointTokens tokens{.image_BIC = x.image_BIC, .text_BTC = x.text_BTC};
  x.image_BIC.reset();
  x.text_BTC.reset();
  blocks_.for_each([&](std::int64_t i, const FluxDoubleBlock& block) {
    tokens = block(tokens, modulators_.next(mods, num_noise), rope, attend_);
    if (const auto* residual = residual_behind(in.residuals.doubles, i, config_.num_layers))
      tokens.image_BIC.narrow(1, 0, residual->size(1)).add_(*residual);
    if (!in.watch) return;
    const auto name = "double_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.image_BIC);
    in.watch(name + " text", tokens.text_BTC);
  });
  x.image_BIC = tokens.image_BIC;
  x.text_BTC = tokens.text_BTC;
  return output_ ? (*output_)(x, mods.take(2 * config_.hidden()), num_noise) : x.pack();
}

std::vector<Tensor> QwenImage::modulations(const std::vector<Tensor>& conditions_SE,
                                           const std::function<void()>& before_layer) const {
  ModulationsMade made(conditions_SE, num_modulations(), before_layer);
  modulators_.add_to(made);
  if (output_)
    made.add([&](const Tensor& vectors_SE) {
      return output_->modulation(vectors_SE.narrow(-1, 0, config_.hidden()));
    });
  return std::move(made).take();
}

std::int64_t QwenImage::num_modulations() const {
  return modulators_.width() + (output_ ? 2 * config_.hidden() : 0);
}

}  // namespace braid
