// What a denoiser offers to the code composed around it: predictions, and the modulations of its
// blocks. These depend only on timestep, guidance and pooled prompt, so they are computed before
// the first step, for all steps (nn/modulations.h). So are blocks that see only the text.
//
// Shape letters: S steps, E width of a conditioning vector, M columns.
#pragma once

#include <memory>

#include "nn/denoiser_shape.h"
#include "nn/rope.h"

namespace braid {

// Takes one input per picture, each a batch of one with the timesteps of S steps -> [S M] each.
using Modulate = std::function<std::vector<Tensor>(const std::vector<DenoiserInput>& pictures)>;

// A part of a denoiser whose inputs bring the modulations of its blocks. A denoiser that computes
// its own sets only `predict`.
struct DenoiserPart {
  PredictPart predict = {};
  // The conditioning vectors [S E] of such an input; only for the part with the first block.
  Predict condition = {};
  // The modulations [S M] of this part's blocks, for each of the vectors. `before_layer` may throw
  // to stop.
  std::function<std::vector<Tensor>(const std::vector<Tensor>& conditions_SE,
                                    const std::function<void()>& before_layer)>
      modulate = {};
  std::int64_t num_modulations = 0;  // M
  // The text [B T C] after this part's blocks that depend on nothing else, from an input without
  // DenoiserInput::refined_BTC and the previous part's text, undefined for the first. Empty if the
  // model has no such blocks.
  PredictPart refine = {};
  // What Tokens::rope is made of; without widths the model makes its own.
  RopeAxes rope_axes = {};
  TextTokens text = TextTokens::kJoint;  // as in the model's shape
};

// The prediction of a part that follows `whole`, given its own slice of the modulations. `whole`
// appends what the part modulates and refines to that of the parts before.
PredictPart joined_to(DenoiserPart& whole, DenoiserPart part);

// Wraps a model that has these five functions. A family whose model refines its text sets `refine`
// itself; whoever puts the part under a layout sets `text`.
template <class Model>
DenoiserPart part_of(std::shared_ptr<const Model> model) {
  return {
      .predict = [=](const DenoiserInput& in,
                     const Tensor& state) { return model->advance(in, state); },
      .condition = [=](const DenoiserInput& in) { return model->condition(in); },
      .modulate =
          [=](const std::vector<Tensor>& conditions_SE, const std::function<void()>& before_layer) {
            return model->modulations(conditions_SE, before_layer);
          },
      .num_modulations = model->num_modulations(),
      .rope_axes = model->config().rope_axes()};
}

// The ControlNets of a model, if it has any.
struct Controls {
  Follow follow = {};
  // Set for nets that see pixels: computes, once, what net number `net` makes of a picture, one row
  // per noise token [1 N C].
  std::function<Tensor(int net, const Tensor& picture_13HW)> encode = {};
  // Modulations for the net that control number `control` of the pictures belongs to.
  std::function<std::vector<Tensor>(const std::vector<DenoiserInput>& pictures,
                                    std::size_t control)>
      modulate = {};
};

}  // namespace braid
