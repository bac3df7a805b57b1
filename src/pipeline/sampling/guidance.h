// Classifier-free guidance: how the velocities of two branches, with the prompt and with the
// negative prompt, become one (Ho and Salimans, 2021).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace braid {

using at::Tensor;

// Which branch the difference of both is added to.
enum class GuidedFrom {
  kNegative,  // negative + scale * (positive - negative), on above 1
  kPositive,  // positive + scale * (positive - negative), on above 0
};

inline bool is_on(GuidedFrom from, double scale) {
  return scale > (from == GuidedFrom::kNegative ? 1 : 0);
}

struct TrueGuidance {
  GuidedFrom from = GuidedFrom::kNegative;
  double scale = 1;
  double rescale = 0, norm_cap = 0;  // 0: off
  double until = 1;                  // part of the way to the picture, behind which it is off
};

// Velocities [B ...] of one branch or two; `done` is the part of the way to the picture, 0 to 1.
// What follows the sum is in float32.
Tensor guide(const std::vector<Tensor>& velocities, const TrueGuidance& guidance, double done);

}  // namespace braid
