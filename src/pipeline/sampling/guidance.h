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
  // Of tokens of several latents, these many channels slowest: each latent of the sum is as long as
  // the positive branch has it. 0: off
  std::int64_t kept_channels = 0;
  double until = 1;  // part of the way to the picture, behind which it is off
};

// Velocities [B ...] of one branch or two; `done` is the part of the way to the picture, 0 to 1.
// What a request adds to the sum is in float32.
Tensor guide(const std::vector<Tensor>& velocities, const TrueGuidance& guidance, double done);

}  // namespace braid
