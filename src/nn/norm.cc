#include "nn/norm.h"

#include <ATen/ATen.h>

namespace braid {

LayerNorm::LayerNorm(const Weights& w, std::int64_t width, double eps)
    : weight_(w.tensor("weight", {width})), bias_(w.tensor("bias", {width})), eps_(eps) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight_, bias_, eps_);
}

}  // namespace braid
