#include "models/qwen_image/controlnet.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/qwen_image/names.h"

namespace braid {

QwenImageControlNetConfig read_qwen_image_controlnet_config(const JsonObject& json) {
  json.check_class("QwenImageControlNetModel");
  constexpr std::int64_t kMaskOfToken = 4;  // a number for each of its 2 x 2 latents
  const auto extra = json.integer_or("extra_condition_channels", 0, 0, 1 << 20);
  require(extra == 0 || extra == kMaskOfToken, json.source(),
          ": 'extra_condition_channels' should be 0, or ", kMaskOfToken,
          " for a ControlNet that fills pictures in, it is ", extra);
  return {.qwen = read_qwen_image_sizes(json), .extra_channels = extra};
}

Names qwen_image_controlnet_names() {
  auto names = qwen_image_names_of_diffusers();
  names.spellings.push_back({"double_blocks.*.residual", {"controlnet_blocks.*"}});
  return names;
}

QwenImageControlNet::QwenImageControlNet(const QwenImageControlNetConfig& config, const Weights& w,
                                         Attend attend)
    : config_(config.qwen),
      attend_(std::move(attend)),
      inputs_(w, config_),
      modulators_(w, run_of({}, config_.num_layers), config_),
      control_in_(w / "controlnet_x_embedder",
                  {.in = config_.in_channels + config.extra_channels, .out = config_.hidden()}),
      blocks_(w / "double_blocks", config_.num_layers, blocks_of(config_)) {
  w.finish();
}

std::vector<Tensor> QwenImageControlNet::modulations(
    const std::vector<Tensor>& conditions_SE) const {
  ModulationsMade made(conditions_SE, modulators_.width());
  modulators_.add_to(made);
  return std::move(made).take();
}

BlockResiduals QwenImageControlNet::operator()(const DenoiserInput& in,
                                               const ControlInput& control) const {
  const auto rope = rope_of({&control.text, &in.noise}, config_.rope_axes());
  const auto x = inputs_({.noise = in.noise, .text = control.text});
  JointTokens tokens{.image_BIC = x.image_BIC + control_in_(control.x_BNC), .text_BTC = x.text_BTC};
  Modulations mods(control.modulations_BM);
  BlockResiduals made;
  blocks_.for_each([&](std::int64_t, const FluxControlBlock<FluxDoubleBlock>& at) {
    const auto modulations = modulators_.next(mods, tokens.image_BIC.size(1));
    tokens = at.block(tokens, modulations, rope, attend_);
    made.doubles.push_back(at.residual(tokens.image_BIC) * control.scale);
  });
  return made;
}

}  // namespace braid
