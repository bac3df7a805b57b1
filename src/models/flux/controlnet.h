// A ControlNet for FLUX.1 (Zhang et al., 2023; diffusers' FluxControlNetModel): the first blocks of
// a transformer, which also see a control picture. Each block has a layer for the residual it adds
// to the other transformer's tokens.
//
// Shape letters: B batch, N tokens of noise, C hidden width.
#pragma once

#include "models/flux/ends.h"
#include "models/flux/hint.h"
#include "models/flux/modulators.h"
#include "nn/block_list.h"
#include "nn/rope.h"
#include "weights/sharding.h"

namespace braid {

struct FluxControlNetConfig {
  FluxConfig flux;                 // the net's own blocks
  std::int64_t num_modes = 0;      // kinds of pictures, selected by number; 0: one kind
  std::int64_t hint_channels = 0;  // channels of its own layers for pixels; 0: it takes latents
};

// Reads config.json in the net's directory. Throws InputError naming the field.
FluxControlNetConfig read_flux_controlnet_config(const JsonObject& json);

Names flux_controlnet_names();

// A block and the layer for its residual.
template <class Block>
struct FluxControlBlock {
  FluxControlBlock(const Weights& w, const FluxConfig& c)
      : block(w, c), residual(w / "residual", {.in = c.hidden(), .out = c.hidden()}) {}

  Block block;
  Linear residual;
};

class FluxControlNet {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  FluxControlNet(const FluxControlNetConfig& config, const Weights& w,
                 Attend attend = ops::attention);

  // Takes the noise of `in` and one of its controls, with the control's modulations. The result is
  // multiplied by the control's scale.
  BlockResiduals operator()(const DenoiserInput& in, const ControlInput& control) const;

  // Set for a net that sees pixels: turns a picture into the rows of a control, [1 N 4
  // hint_channels].
  Tensor encode(const Tensor& picture_13HW) const;

  // condition(): silu of the conditioning vectors [S C], from the timesteps of `in` and one of its
  // controls. modulations(): the blocks' modulations for several such vectors.
  Tensor condition(const DenoiserInput& in, const ControlInput& control) const;
  std::vector<Tensor> modulations(const std::vector<Tensor>& conditions_SC) const;

 private:
  DenoiserInput as_input(const DenoiserInput& in, const ControlInput& control) const;
  FluxState begin(const DenoiserInput& in, const ControlInput& control) const;
  Tensor with_mode(const Tensor& text_BTC, const ControlInput& control) const;

  FluxControlNetConfig config_;
  Attend attend_;
  FluxInputs inputs_;
  FluxModulators modulators_;
  std::optional<PictureHint> hint_;
  Linear control_in_;
  std::optional<Tensor> modes_;  // [modes C]
  BlockList<FluxControlBlock<FluxDoubleBlock>> double_blocks_;
  BlockList<FluxControlBlock<FluxSingleBlock>> single_blocks_;
};

}  // namespace braid
