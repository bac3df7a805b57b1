// Products with GELU at their end, by the library's kernels.
#include <ATen/ATen.h>

#include "base/gpu_runtime.h"
#include "ops/gpu/gpu.h"

namespace braid::ops::gpu {

// cuBLASLt's GELU is the tanh approximation, and LibTorch applies the same where it does not use
// cuBLASLt (ATen/native/cuda/Blas.cpp; on a CPU it applies the exact GELU). In float32 the kernels'
// tanh may be coarser than the dtype.
bool multiplies_with_gelu(const Tensor& x, const Matrix& weight_NC,
                          const std::optional<Tensor>& bias_N) {
  const auto dtype = x.scalar_type();
  return supports(x) && dtype != at::kFloat && weight_NC.form == Quantize::kNone &&
         !weight_NC.coding && !weight_NC.has_low_rank() && bias_N &&
         weight_NC.values_NC.scalar_type() == dtype && bias_N->scalar_type() == dtype &&
         gpu_runtime::compute_capability(x.get_device()) > 0;
}

Tensor linear_gelu(const Tensor& x, const Matrix& weight_NC, const Tensor& bias_N) {
  const auto x_MC = x.reshape({-1, x.size(-1)});
  const auto y_MN =
      at::_addmm_activation(bias_N.contiguous(), x_MC, weight_NC.values_NC.t(), /*beta=*/1,
                            /*alpha=*/1, /*use_gelu=*/true);
  auto shape = x.sizes().vec();
  shape.back() = y_MN.size(1);
  return y_MN.view(shape);
}

}  // namespace braid::ops::gpu
