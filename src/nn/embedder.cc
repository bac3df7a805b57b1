#include "nn/embedder.h"

#include <ATen/ATen.h>

#include <cmath>

namespace braid {

Tensor sinusoidal_embedding(const Tensor& t_B, std::int64_t width, double scale) {
  const auto half = width / 2;
  const auto steps = at::arange(0, half, t_B.options().dtype(at::kFloat));
  const auto frequencies = at::exp(-std::log(10000.0) * steps / double(half));
  const auto angles = t_B.to(at::kFloat).unsqueeze(1) * frequencies * scale;
  return at::cat({angles.cos(), angles.sin()}, -1);
}

Tensor Embedder::operator()(const Tensor& x_BC) const { return out_(at::silu(in_(x_BC))); }

}  // namespace braid
