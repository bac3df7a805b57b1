// Products of float8 codes by the library's kernels.
#include <ATen/ATen.h>

#include "base/gpu_runtime.h"
#include "ops/gpu/gpu.h"

namespace braid::ops::gpu {
namespace {

constexpr std::int64_t kWidths = 16;
constexpr int kFirstWithFloat8 = 89;  // compute capability

Tensor as_float8(const Tensor& bytes) { return bytes.contiguous().view(at::kFloat8_e4m3fn); }

}  // namespace

bool multiplies_float8(const Tensor& x_MC, const Matrix& weight_NC) {
  return supports(x_MC) && x_MC.scalar_type() == at::kBFloat16 && keeps_rows(x_MC) &&
         x_MC.size(0) > 0 && x_MC.size(1) % kWidths == 0 &&
         weight_NC.values_NC.size(0) % kWidths == 0 &&
         gpu_runtime::compute_capability(x_MC.get_device()) >= kFirstWithFloat8;
}

Tensor linear_float8(const Tensor& x_MC, const Matrix& weight_NC,
                     const std::optional<Tensor>& bias_N, const Tensor& room) {
  const auto tokens = quantize_rows(x_MC, Quantize::kFloat8);
  std::optional<Tensor> bias;
  if (bias_N) bias = bias_N->to(x_MC.scalar_type()).contiguous();
  auto y_MN = room.defined()
                  ? room.view({x_MC.size(0), -1})
                  : at::empty({x_MC.size(0), weight_NC.values_NC.size(0)}, x_MC.options());
  at::_scaled_mm_out(y_MN, as_float8(tokens.values_NC), as_float8(weight_NC.values_NC).t(),
                     tokens.scales_N1, weight_NC.scales_N1.contiguous().t(), bias, {},
                     x_MC.scalar_type(), /*use_fast_accum=*/true);
  return y_MN;
}

}  // namespace braid::ops::gpu
