// Rotary position tables for tokens with positions along several axes.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace braid {

struct RopeAxes {
  std::vector<std::int64_t> widths;  // of the head, per axis; even; they sum to D
  double theta = 10000;
  at::ScalarType angles = at::kDouble;  // angles are rounded to this before the cosine
  // In which frequencies, and their products with positions, are computed. Most models define
  // float64; float32 would be off by 1e-4 at far positions.
  at::ScalarType products = at::kDouble;
};

// ids_LA (positions along each axis) -> tables [L D].
Rope rope_table(const Tensor& ids_LA, const RopeAxes& axes);

// Tables for a language model's tokens at `positions_L`. Angles are computed in float32 on the
// host, as transformers does, then rounded to the dtype of `made`, on its device.
HalfSplitRope half_split_rope(const Tensor& positions_L, std::int64_t head_width, double theta,
                              const at::TensorOptions& made);

}  // namespace braid
