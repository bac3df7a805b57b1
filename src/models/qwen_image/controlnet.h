// A ControlNet for Qwen-Image (Zhang et al., 2023; diffusers' QwenImageControlNetModel): the first
// blocks of a transformer, which also see a control picture. Each block has a layer for the
// residual it adds to the other transformer's tokens. It reads the kind of picture from the
// picture; one that fills pictures in also sees a mask.
//
// Shape letters: S steps, E width of the conditioning vectors.
#pragma once

#include "models/flux/controlnet.h"
#include "models/qwen_image/ends.h"
#include "models/qwen_image/modulators.h"

namespace braid {

struct QwenImageControlNetConfig {
  QwenImageConfig qwen = {};        // the net's own blocks
  std::int64_t extra_channels = 0;  // of a control's tokens, behind the latents': those of a mask
};

// Reads config.json in the net's directory. Throws InputError naming the field.
QwenImageControlNetConfig read_qwen_image_controlnet_config(const JsonObject& json);

Names qwen_image_controlnet_names();

class QwenImageControlNet {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  QwenImageControlNet(const QwenImageControlNetConfig& config, const Weights& w,
                      Attend attend = ops::attention);

  // Takes the noise of `in` and one of its controls, with the control's modulations. The result is
  // multiplied by the control's scale.
  BlockResiduals operator()(const DenoiserInput& in, const ControlInput& control) const;

  // condition(): the conditioning vectors [S E] of the timesteps of `in`. modulations(): the
  // blocks' modulations for several of them.
  Tensor condition(const DenoiserInput& in, const ControlInput&) const {
    return inputs_.condition(in);
  }
  std::vector<Tensor> modulations(const std::vector<Tensor>& conditions_SE) const;

 private:
  QwenImageConfig config_;
  Attend attend_;
  QwenImageInputs inputs_;
  QwenImageModulators modulators_;
  Linear control_in_;
  BlockList<FluxControlBlock<FluxDoubleBlock>> blocks_;
};

}  // namespace braid
