#include "nn/rope.h"

#include <ATen/ATen.h>

namespace braid {

Rope rope_table(const Tensor& ids_LA, const RopeAxes& axes) {
  const auto options = ids_LA.options().dtype(axes.products);
  std::vector<Tensor> angles;
  for (std::size_t a = 0; a < axes.widths.size(); ++a) {
    const auto exponents = at::arange(0, axes.widths[a], 2, options) / double(axes.widths[a]);
    const auto frequencies = 1.0 / at::pow(axes.theta, exponents);
    angles.push_back(at::outer(ids_LA.select(1, std::int64_t(a)).to(axes.products), frequencies));
  }
  const auto angle = at::cat(angles, 1).to(axes.angles).repeat_interleave(2, 1);
  return {.cos = angle.cos().to(at::kFloat), .sin = angle.sin().to(at::kFloat)};
}

HalfSplitRope half_split_rope(const Tensor& positions_L, std::int64_t head_width, double theta,
                              const at::TensorOptions& made) {
  const auto exponents = at::arange(0, head_width, 2, at::kFloat) / double(head_width);
  const auto frequencies = 1.0 / at::pow(theta, exponents);
  const auto angle = at::outer(positions_L.to(at::kCPU, at::kFloat), frequencies);
  return {.cos = angle.cos().to(made), .sin = angle.sin().to(made)};
}

}  // namespace braid
