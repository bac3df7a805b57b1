// Launches the kernel for weights as a file has them, and products by what it decodes.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "ops/gpu/gpu.h"
#include "ops/gpu/launch_shape.h"
#include "ops/panels.h"

namespace braid::ops::gpu {
namespace {

Stored stored_as(ElementType type) {
  static_assert(int(ElementType::kIq4Xs) - int(ElementType::kQ4_0) == int(Stored::kIq4Xs));
  if (type == ElementType::kFloat8E4M3) return Stored::kFloat8E4M3;
  if (type == ElementType::kFloat8E5M2) return Stored::kFloat8E5M2;
  return Stored(int(type) - int(ElementType::kQ4_0));
}

Block decoded_together(ElementType type) {
  return is_float8(type) ? Block{.numbers = kLanesOfBlock, .bytes = kLanesOfBlock} : block_of(type);
}

// Decodes one run of columns into the columns of `out_NC` from `at` on.
void decode_run(const Matrix& matrix, const Share& run, std::int64_t at, const Tensor& out_NC) {
  const auto block = decoded_together(matrix.coding->type);
  const auto first = run.begin / block.numbers;
  const auto skipped = run.begin - first * block.numbers;
  const auto blocks = (skipped + run.count + block.numbers - 1) / block.numbers;
  const auto number = number_of(out_NC);
  const auto& bytes = matrix.values_NC;
  launch(DecodeRows{.type = stored_as(matrix.coding->type),
                    .blocks = bytes.const_data_ptr<std::uint8_t>() + first * block.bytes,
                    .row_bytes = bytes.stride(0),
                    .numbers = block.numbers,
                    .bytes = block.bytes,
                    .scales = matrix.scales_N1.defined() ? matrix.scales_N1.const_data_ptr<float>()
                                                         : nullptr,
                    .y = out_NC.narrow(1, at, run.count).mutable_data_ptr(),
                    .width = out_NC.stride(0),
                    .skipped = skipped,
                    .count = run.count},
         launch_over_vectors(number, kNarrowVector<DecodeRows>,
                             {.rows = out_NC.size(0), .width = blocks * kLanesOfBlock},
                             out_NC.device()));
}

}  // namespace

bool supports_decoding(const Tensor& x, const Matrix& weight_NC) {
  const auto dtype = x.scalar_type();
  return x.is_cuda() && (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf) &&
         weight_NC.form == Quantize::kNone && weight_NC.coding;
}

void decode(const Matrix& matrix, const Tensor& out_NC) {
  if (out_NC.numel() == 0) return;
  const auto& columns = matrix.coding->columns;
  const c10::DeviceGuard on(out_NC.device());
  if (columns.empty()) return decode_run(matrix, {0, out_NC.size(1)}, 0, out_NC);
  std::int64_t at = 0;
  for (const auto& run : columns) {
    if (run.count > 0) decode_run(matrix, run, at, out_NC);
    at += run.count;
  }
}

Tensor linear_of_stored(const Tensor& x_MC, const Matrix& weight_NC,
                        const std::optional<Tensor>& bias_N, Scratch& scratch) {
  const auto rows = weight_NC.values_NC.size(0), inputs = weight_NC.inputs();
  const auto at_once = rows_per_panel(rows, inputs * std::int64_t(x_MC.element_size()));
  const auto panel_of = [&](std::int64_t row, std::int64_t count) {
    const auto panel = scratch.take({count, inputs}, x_MC.scalar_type(), x_MC.device());
    decode(rows_of(weight_NC, row, count), panel);
    return panel;
  };
  if (at_once >= rows) return at::linear(x_MC, panel_of(0, rows), bias_N);
  const auto y_MN = at::empty({x_MC.size(0), rows}, x_MC.options());
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const auto count = std::min(at_once, rows - row);
    const auto panel = panel_of(row, count);
    auto y = y_MN.narrow(1, row, count);  // which the library's products write in place
    if (bias_N)
      at::addmm_out(y, bias_N->narrow(0, row, count), x_MC, panel.t());
    else
      at::mm_out(y, x_MC, panel.t());
  }
  return y_MN;
}

}  // namespace braid::ops::gpu
