#include "models/flux/controlnet.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/flux/names.h"

namespace braid {
namespace {

constexpr std::int64_t kMostModes = 10'000;

std::optional<Tensor> load_modes(const Weights& w, const FluxControlNetConfig& c) {
  if (c.num_modes == 0) return {};
  return (w / "controlnet_mode_embedder").tensor("weight", {c.num_modes, c.flux.hidden()});
}

std::optional<PictureHint> load_hint(const Weights& w, const FluxControlNetConfig& c) {
  if (c.hint_channels == 0) return {};
  return PictureHint(w / "input_hint_block", c.hint_channels);
}

}  // namespace

FluxControlNetConfig read_flux_controlnet_config(const JsonObject& json) {
  json.check_class("FluxControlNetModel");
  FluxControlNetConfig c{.flux = read_flux_blocks_config(json)};
  if (json.has("conditioning_embedding_channels")) {
    json.integer("patch_size", 2, 2);
    const auto channels = c.flux.in_channels / 4;
    c.hint_channels = json.integer("conditioning_embedding_channels", channels, channels);
  } else {
    json.integer_or("patch_size", 1, 1, 1);
  }
  if (json.has("num_mode")) c.num_modes = json.integer("num_mode", 1, kMostModes);
  return c;
}

Names flux_controlnet_names() {
  auto names = flux_names_of_diffusers();
  names.spellings.push_back({"double_blocks.*.residual", {"controlnet_blocks.*"}});
  names.spellings.push_back({"single_blocks.*.residual", {"controlnet_single_blocks.*"}});
  return names;
}

FluxControlNet::FluxControlNet(const FluxControlNetConfig& c, const Weights& w, Attend attend)
    : config_(c),
      attend_(std::move(attend)),
      inputs_(w, c.flux),
      modulators_(w, run_of({}, c.flux.num_double + c.flux.num_single), c.flux),
      hint_(load_hint(w, c)),
      control_in_(w / "controlnet_x_embedder", {.in = c.flux.in_channels, .out = c.flux.hidden()}),
      modes_(load_modes(w, c)),
      double_blocks_(w / "double_blocks", c.flux.num_double, c.flux),
      single_blocks_(w / "single_blocks", c.flux.num_single, c.flux) {
  w.finish();
}

Tensor FluxControlNet::encode(const Tensor& picture_13HW) const {
  return hint_.value()(picture_13HW);
}

// Replaces the text's pad by the mode's embedding.
Tensor FluxControlNet::with_mode(const Tensor& text_BTC, const ControlInput& control) const {
  if (!modes_) return text_BTC;
  return at::where(control.text.is_pad_L.unsqueeze(-1), modes_->index_select(0, control.mode),
                   text_BTC);
}

DenoiserInput FluxControlNet::as_input(const DenoiserInput& in, const ControlInput& control) const {
  return {.noise = in.noise,
          .text = control.text,
          .pooled_BC = control.pooled_BC,
          .timestep_B = in.timestep_B,
          .guidance_B = control.guidance_B};
}

Tensor FluxControlNet::condition(const DenoiserInput& in, const ControlInput& control) const {
  return inputs_.condition(as_input(in, control));
}

std::vector<Tensor> FluxControlNet::modulations(const std::vector<Tensor>& conditions_SC) const {
  ModulationsMade made(conditions_SC, modulators_.width());
  modulators_.add_to(made);
  return std::move(made).take();
}

FluxState FluxControlNet::begin(const DenoiserInput& in, const ControlInput& control) const {
  auto x = inputs_(as_input(in, control));
  x.image_BIC = x.image_BIC + control_in_(control.x_BNC);
  x.text_BTC = with_mode(x.text_BTC, control);
  return x;
}

BlockResiduals FluxControlNet::operator()(const DenoiserInput& in,
                                          const ControlInput& control) const {
  const auto rope = rope_of({&control.text, &in.noise}, config_.flux.rope_axes());
  const auto x = begin(in, control);
  const auto num_text = x.text_BTC.size(1), num_image = x.image_BIC.size(1);
  Modulations mods(control.modulations_BM);
  BlockResiduals made;
  JointTokens tokens{.image_BIC = x.image_BIC, .text_BTC = x.text_BTC};
  double_blocks_.for_each([&](std::int64_t, const FluxControlBlock<FluxDoubleBlock>& at) {
    tokens = at.block(tokens, modulators_.next_double(mods), rope, attend_);
    made.doubles.push_back(at.residual(tokens.image_BIC) * control.scale);
  });
  if (single_blocks_.empty()) return made;
  auto all = at::cat({tokens.text_BTC, tokens.image_BIC}, 1);
  single_blocks_.for_each([&](std::int64_t, const FluxControlBlock<FluxSingleBlock>& at) {
    all = at.block(all, modulators_.next_single(mods), rope, attend_);
    made.singles.push_back(at.residual(all.narrow(1, num_text, num_image)) * control.scale);
  });
  return made;
}

}  // namespace braid
