// Classifier-free guidance: combines the velocities of two branches, with the prompt and with the
// negative prompt, into one (Ho and Salimans, 2021).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace braid {

using at::Tensor;

// The branch to which the difference of both is added.
enum class GuidedFrom {
  kNegative,  // negative + scale * (positive - negative)
  kPositive,  // positive + scale * (positive - negative)
};

// The scales at which a pipeline evaluates both branches.
enum class GuidedScales {
  kAboveNeutral,
  kAllButNeutral,  // a smaller scale moves the sum towards the negative branch
};

// The scale at which the sum is the positive branch.
inline double neutral_scale(GuidedFrom from) { return from == GuidedFrom::kNegative ? 1 : 0; }

inline bool is_on(GuidedFrom from, GuidedScales scales, double scale) {
  const auto neutral = neutral_scale(from);
  return scales == GuidedScales::kAboveNeutral ? scale > neutral : scale != neutral;
}

struct TrueGuidance {
  GuidedFrom from = GuidedFrom::kNegative;
  double scale = 1;
  double rescale = 0, norm_cap = 0;  // 0: off
  // Channels of each latent where tokens hold several, slowest: each latent of the sum then keeps
  // the positive branch's length. 0: off
  std::int64_t kept_channels = 0;
  double until = 1;  // fraction of the way to the picture after which it is off
  // The timestep from which that way is measured, as by ZImagePipeline, whose way does not end at 1
  // with every schedule. 0: the length of training, so that 1 leaves guidance on.
  float way_from = 0;
};

// Velocities [B ...] of one or two branches; `done` is the fraction of the way to the picture, 0 to
// 1. Norm cap and rescaling are computed in float32.
Tensor guide(const std::vector<Tensor>& velocities, const TrueGuidance& guidance, double done);

}  // namespace braid
