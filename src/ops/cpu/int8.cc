#include "ops/cpu/int8.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/cpu/tensor_rows.h"
#include "ops/kernels/codes.h"

namespace braid::ops {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;

const CodeKernels& kernels_of(const Tensor& out) { return code_kernels(cpu::row_type_of(out)); }

// Calls body(row, address of its result) for all rows.
template <class Body>
void for_each_row(const Tensor& out, Body body) {
  auto* const data = static_cast<char*>(out.mutable_data_ptr());
  const auto bytes = out.size(1) * std::int64_t(out.element_size());
  at::parallel_for(0, out.size(0), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) body(row, data + row * bytes);
  });
}

}  // namespace

void widen_on_cpu(const Matrix& matrix, const Tensor& out_NC) {
  const auto scales = matrix.scales_N1.to(at::kFloat).contiguous();
  const auto values = matrix.values_NC.contiguous();
  const auto* const scale = scales.const_data_ptr<float>();
  const auto* const codes = values.const_data_ptr<std::int8_t>();
  const auto width = out_NC.size(1);
  for_each_row(out_NC, [&](std::int64_t row, void* to) {
    kernels_of(out_NC).widen(codes + row * width, scale[row], width, to);
  });
}

void scale_on_cpu(const ScaledSums& y, const Tensor& out_MN) {
  const auto width = out_MN.size(1);
  const auto bias = y.bias_N ? *y.bias_N : at::zeros({width}, at::kFloat);
  const auto* const sums = y.sums_MN.const_data_ptr<std::int32_t>();
  const auto* const token_scales = y.token_scales_M1.const_data_ptr<float>();
  for_each_row(out_MN, [&](std::int64_t row, void* to) {
    kernels_of(out_MN).scale({.sums = sums + row * width,
                              .token_scale = token_scales[row],
                              .row_scales = y.row_scales_N1.const_data_ptr<float>(),
                              .bias = bias.const_data_ptr<float>(),
                              .count = width},
                             to);
  });
}

}  // namespace braid::ops
