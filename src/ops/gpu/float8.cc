// Products of float8 codes by the library's kernels.
#include <ATen/ATen.h>

#include "base/gpu_runtime.h"
#include "base/gpus.h"
#include "ops/gpu/gpu.h"

namespace braid::ops::gpu {
namespace {

constexpr std::int64_t kWidths = 16;

Tensor as_float8(const Tensor& bytes) { return bytes.contiguous().view(at::kFloat8_e4m3fn); }

}  // namespace

bool multiplies_float8(const Tensor& x, const Matrix& weight_NC) {
  const auto inputs = weight_NC.inputs();
  return weight_NC.form == Quantize::kFloat8 && supports(x) && x.scalar_type() == at::kBFloat16 &&
         x.numel() > 0 && keeps_rows(inputs) && inputs % kWidths == 0 &&
         weight_NC.values_NC.size(0) % kWidths == 0 &&
         gpu_runtime::compute_capability(x.get_device()) >= kFirstWithFloat8;
}

Tensor linear_float8(const LayerInput& x, const Matrix& weight_NC,
                     const std::optional<Tensor>& bias_N, const Tensor& room) {
  const auto x_MC = x.x.reshape({-1, x.x.size(-1)});
  const auto tokens =
      x.is_quantized()
          ? Matrix{.form = Quantize::kFloat8, .values_NC = x_MC, .scales_N1 = x.scales_M1}
          : quantize_rows(x_MC, Quantize::kFloat8);
  std::optional<Tensor> bias;
  if (bias_N) bias = bias_N->to(at::kBFloat16).contiguous();
  const std::vector<std::int64_t> shape = {x_MC.size(0), weight_NC.values_NC.size(0)};
  auto y_MN =
      room.defined() ? room.view(shape) : at::empty(shape, x_MC.options().dtype(at::kBFloat16));
  at::_scaled_mm_out(y_MN, as_float8(tokens.values_NC), as_float8(weight_NC.values_NC).t(),
                     tokens.scales_N1, weight_NC.scales_N1.contiguous().t(), bias, {},
                     at::kBFloat16, /*use_fast_accum=*/true);
  return y_MN;
}

}  // namespace braid::ops::gpu
