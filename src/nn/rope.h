// Rotary position tables for tokens that have a position along several axes.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace braid {

struct RopeAxes {
  std::vector<std::int64_t> widths;  // how much of the head each axis has; even; they sum to D
  double theta = 10000;
  at::ScalarType angles = at::kDouble;  // what an angle is rounded to before its cosine is taken
};

// ids_LA (positions along each axis) -> tables [L D]. The products are formed in float64, as the
// models define them; float32 would be off by 1e-4 at far positions.
Rope rope_table(const Tensor& ids_LA, const RopeAxes& axes);

// Tables for language models' tokens at `positions_L`. The angles are computed in float32 on the
// host, as transformers defines them; then rounded to the dtype of `made`, on its device.
HalfSplitRope half_split_rope(const Tensor& positions_L, std::int64_t head_width, double theta,
                              const at::TensorOptions& made);

}  // namespace braid
