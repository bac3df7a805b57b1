// Launches the kernels for 8-bit codes.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include "base/gpus.h"
#include "ops/gpu/gpu.h"
#include "ops/gpu/launch_shape.h"
#include "weights/codes/float8.h"

namespace braid::ops::gpu {
namespace {

Codes codes_of(Quantize form) { return form == Quantize::kFloat8 ? Codes::kFloat8 : Codes::kInt8; }

}  // namespace

bool rotates_rows(const Tensor& x_MC, std::int64_t together) {
  const int vector = vector_for(number_of(x_MC), kNarrowVector<QuantizeRows>, {x_MC});
  return together <= std::int64_t(kLanes) * vector;
}

bool supports_int8_products(const Tensor& x) {
  if (!x.is_cuda()) return true;
  static const auto kAll = find_gpus();
  const auto device = std::size_t(x.get_device());
  return device >= kAll.size() || multiplies_int8(kAll[device].architecture);
}

Matrix quantize_rows(const Tensor& x_MC, Quantize form, std::int64_t rotated_together) {
  const Shape shape{.rows = x_MC.size(0), .width = x_MC.size(1)};
  const Matrix result{
      .form = form,
      .values_NC = at::empty({shape.rows, shape.width}, x_MC.options().dtype(type_of_codes(form))),
      .scales_N1 = at::empty({shape.rows, 1}, x_MC.options().dtype(at::kFloat)),
      .coding = coding_of(form)};
  if (x_MC.numel() == 0) return result;
  const auto number = number_of(x_MC);
  const int vector = vector_for(number, kNarrowVector<QuantizeRows>, {x_MC, result.values_NC});
  const c10::DeviceGuard on(x_MC.device());
  launch(QuantizeRows{.x = rows_of(x_MC.unsqueeze(0)),
                      .form = codes_of(form),
                      .codes = result.values_NC.mutable_data_ptr(),
                      .scales = result.scales_N1.mutable_data_ptr<float>(),
                      .width = shape.width,
                      .rotated_together = int(rotated_together)},
         launch_over_rows(number, vector, shape, x_MC.device()));
  return result;
}

void widen(const Matrix& matrix, const Tensor& out_NC) {
  if (out_NC.numel() == 0) return;
  const auto codes = matrix.values_NC.contiguous();
  const auto scales = matrix.scales_N1.to(at::kFloat).contiguous();
  const auto number = number_of(out_NC);
  const int vector = vector_for(number, kNarrowVector<Widen>, {codes, out_NC});
  const c10::DeviceGuard on(out_NC.device());
  launch(Widen{.form = codes_of(matrix.form),
               .codes = codes.const_data_ptr(),
               .scales = scales.const_data_ptr<float>(),
               .y = out_NC.mutable_data_ptr(),
               .width = out_NC.size(1)},
         launch_over_vectors(number, vector, {.rows = out_NC.size(0), .width = out_NC.size(1)},
                             out_NC.device()));
}

void scale(const ScaledSums& y, const Tensor& out_MN) {
  if (out_MN.numel() == 0) return;
  const auto sums = y.sums_MN.contiguous(), rows = y.row_scales_N1.contiguous().view({1, -1});
  const auto tokens = y.token_scales_M1.contiguous();
  const auto bias = y.bias_N ? y.bias_N->contiguous() : rows;
  const auto number = number_of(out_MN);
  const int vector = vector_for(number, kNarrowVector<ScaleSums>, {sums, rows, bias, out_MN});
  const c10::DeviceGuard on(out_MN.device());
  launch(ScaleSums{.sums = sums.const_data_ptr<std::int32_t>(),
                   .token_scales = tokens.const_data_ptr<float>(),
                   .row_scales = rows.const_data_ptr<float>(),
                   .bias = y.bias_N ? bias.const_data_ptr<float>() : nullptr,
                   .y = out_MN.mutable_data_ptr(),
                   .width = out_MN.size(1)},
         launch_over_vectors(number, vector, {.rows = out_MN.size(0), .width = out_MN.size(1)},
                             out_MN.device()));
}

}  // namespace braid::ops::gpu
