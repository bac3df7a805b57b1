#include "models/flux/model.h"

#include <ATen/ATen.h>

#include "nn/joined_tokens.h"

namespace braid {
Flux::Flux(const FluxConfig& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_double + c.num_single)),
      attend_(std::move(attend)),
      inputs_(load_end<FluxInputs>(w, place_if(run_.has_first()), c)),
      modulators_(w, run_, c),
      double_blocks_(w / "double_blocks", run_.of_kind(0, c.num_double), c),
      single_blocks_(w / "single_blocks", run_.of_kind(c.num_double, c.num_single), c),
      output_(load_end<FluxOutput>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

FluxState Flux::begin(const DenoiserInput& in, const Tensor& state) const {
  if (!inputs_) return FluxState::unpack(state, in.text.x_BLC.size(1));
  const auto x = (*inputs_)(in);
  if (in.watch) in.watch("img_in", x.image_BIC);
  if (in.watch) in.watch("txt_in", x.text_BTC);
  return x;
}

void Flux::run_double_blocks(FluxState& x, Modulations& mods, const DenoiserInput& in,
                             const Rope& rope) const {
  JointTokens tokens{.image_BIC = x.image_BIC, .text_BTC = x.text_BTC};
  x.image_BIC.reset();
  x.text_BTC.reset();
  double_blocks_.for_each([&](std::int64_t i, const FluxDoubleBlock& block) {
    tokens = block(tokens, modulators_.next_double(mods), rope, attend_);
    if (const auto* residual = residual_behind(in.residuals.doubles, i, config_.num_double))
      tokens.image_BIC = tokens.image_BIC + *residual;
    if (!in.watch) return;
    const auto name = "double_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.image_BIC);
    in.watch(name + " text", tokens.text_BTC);
  });
  x.image_BIC = tokens.image_BIC;
  x.text_BTC = tokens.text_BTC;
}

void Flux::run_single_blocks(FluxState& x, Modulations& mods, const DenoiserInput& in,
                             const Rope& rope) const {
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  auto tokens = joined_tokens(x.text_BTC, x.image_BIC);
  single_blocks_.for_each([&](std::int64_t i, const FluxSingleBlock& block) {
    tokens = block(tokens, modulators_.next_single(mods), rope, attend_);
    if (const auto* residual = residual_behind(in.residuals.singles, i, config_.num_single))
      tokens.narrow(1, num_text, num_image).add_(*residual);
    if (!in.watch) return;
    const auto name = "single_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.narrow(1, num_text, num_image));
    in.watch(name + " text", tokens.narrow(1, 0, num_text));
  });
  x.image_BIC = tokens.narrow(1, num_text, num_image);
  x.text_BTC = tokens.narrow(1, 0, num_text);
}

Tensor Flux::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto rope = rope_of(text_and_images(in), config_.rope_axes());
  auto x = begin(in, state);
  Modulations mods(in.modulations_BM);
  run_double_blocks(x, mods, in, rope);
  if (!single_blocks_.empty()) run_single_blocks(x, mods, in, rope);
  return output_ ? (*output_)(x, mods.take(2 * config_.hidden()), in.noise.x_BLC.size(1))
                 : x.pack();
}

std::vector<Tensor> Flux::modulations(const std::vector<Tensor>& conditions_SC,
                                      const std::function<void()>& before_layer) const {
  ModulationsMade made(conditions_SC, num_modulations(), before_layer);
  modulators_.add_to(made);
  if (output_) output_->add_to(made);
  return std::move(made).take();
}

std::int64_t Flux::num_modulations() const {
  return modulators_.width() + (output_ ? 2 * config_.hidden() : 0);
}

}  // namespace braid
