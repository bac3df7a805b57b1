#include "nn/norm.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr double kEpsOfOps = 1e-6;

}  // namespace

LayerNorm::LayerNorm(const Weights& w, std::int64_t width, double eps)
    : weight_(w.tensor("weight", {width})), bias_(w.tensor("bias", {width})), eps_(eps) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight_, bias_, eps_);
}

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m, double eps) {
  if (eps == kEpsOfOps) return ops::modulated_norm(x_BLC, m);
  const auto dtype = at::promote_types(x_BLC.scalar_type(), at::kFloat);  // rounded once
  const auto y = at::layer_norm(x_BLC.to(dtype), {x_BLC.size(-1)}, {}, {}, eps);
  return (y * (1 + m.scale.to(dtype)) + m.shift).to(x_BLC.scalar_type());
}

}  // namespace braid
