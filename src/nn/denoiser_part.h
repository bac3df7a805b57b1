// What a denoiser offers to those who compose around it: predictions, and what modulates its
// blocks, which depends on the timestep, the guidance and the pooled prompt alone and is made
// before the first step, of all steps (nn/modulations.h).
//
// Shape letters: S steps, E width of a conditioning vector, M columns.
#pragma once

#include <memory>

#include "nn/predict.h"

namespace braid {

// Of pictures, inputs of a batch of one with the timesteps of S steps at once -> [S M] each
using Modulate = std::function<std::vector<Tensor>(const std::vector<DenoiserInput>& pictures)>;

// A part of a denoiser whose inputs bring what modulates its blocks, or of one that makes it
// itself: then there is only `predict`.
struct DenoiserPart {
  PredictPart predict = {};
  // The conditioning vectors [S E] of such a picture, of the part that has the first block.
  Predict condition = {};
  // Of several of these vectors what modulates the blocks of this part: [S M] each.
  std::function<std::vector<Tensor>(const std::vector<Tensor>& conditions_SE)> modulate = {};
  std::int64_t num_modulations = 0;  // M
};

// Of a model that has all four.
template <class Model>
DenoiserPart part_of(std::shared_ptr<const Model> model) {
  return {.predict = [=](const DenoiserInput& in,
                         const Tensor& state) { return model->advance(in, state); },
          .condition = [=](const DenoiserInput& in) { return model->condition(in); },
          .modulate =
              [=](const std::vector<Tensor>& conditions_SE) {
                return model->modulations(conditions_SE);
              },
          .num_modulations = model->num_modulations()};
}

// The ControlNets of a model, if it has any.
struct Controls {
  Follow follow = {};
  // Of the net that the pictures' control number `control` is of.
  std::function<std::vector<Tensor>(const std::vector<DenoiserInput>& pictures,
                                    std::size_t control)>
      modulate = {};
};

}  // namespace braid
