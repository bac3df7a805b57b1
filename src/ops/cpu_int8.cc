#include "ops/cpu_int8.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <bit>

#include "base/compat.h"

namespace braid::ops {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;

// To nearest, half to even. Not for NaN, which codes times a finite scale never are.
inline std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float rounded_to_bfloat16(float value) {
  return std::bit_cast<float>(std::uint32_t(bfloat16_bits(value)) << 16);
}

BRAID_FOR_EACH_CPU
void widen_row(const std::int8_t* codes, float scale, std::int64_t n, std::uint16_t* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = bfloat16_bits(float(codes[i]) * scale);
}

BRAID_FOR_EACH_CPU
void widen_row(const std::int8_t* codes, float scale, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = float(codes[i]) * scale;
}

BRAID_FOR_EACH_CPU
void scale_row(const std::int32_t* sums, float token_scale, const float* row_scales,
               const float* bias, std::int64_t n, std::uint16_t* out) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] =
        bfloat16_bits(rounded_to_bfloat16(float(sums[i]) * token_scale) * row_scales[i] + bias[i]);
}

BRAID_FOR_EACH_CPU
void scale_row(const std::int32_t* sums, float token_scale, const float* row_scales,
               const float* bias, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = float(sums[i]) * token_scale * row_scales[i] + bias[i];
}

template <class Number>
void widen_rows(const Matrix& m, Number* out) {
  const auto width = m.values_NC.size(1);
  const auto* const codes = m.values_NC.const_data_ptr<std::int8_t>();
  const auto scales = m.scales_N1.to(at::kFloat);
  const auto* const scale = scales.const_data_ptr<float>();
  at::parallel_for(0, m.values_NC.size(0), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      widen_row(codes + row * width, scale[row], width, out + row * width);
  });
}

template <class Number>
void scale_rows(const ScaledSums& y, Number* out) {
  const auto width = y.sums_MN.size(1);
  const auto* const sums = y.sums_MN.const_data_ptr<std::int32_t>();
  const auto* const tokens = y.token_scales_M1.const_data_ptr<float>();
  const auto* const rows = y.row_scales_N1.const_data_ptr<float>();
  const auto bias = y.bias_N ? *y.bias_N : at::zeros({width}, at::kFloat);
  const auto* const added = bias.const_data_ptr<float>();
  at::parallel_for(0, y.sums_MN.size(0), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      scale_row(sums + row * width, tokens[row], rows, added, width, out + row * width);
  });
}

std::uint16_t* bits_of(const Tensor& bfloat16) {
  return reinterpret_cast<std::uint16_t*>(bfloat16.mutable_data_ptr<at::BFloat16>());
}

}  // namespace

void widen_on_cpu(const Matrix& matrix, const Tensor& out_NC) {
  if (out_NC.scalar_type() == at::kBFloat16) return widen_rows(matrix, bits_of(out_NC));
  widen_rows(matrix, out_NC.mutable_data_ptr<float>());
}

void scale_on_cpu(const ScaledSums& y, const Tensor& out_MN) {
  if (out_MN.scalar_type() == at::kBFloat16) return scale_rows(y, bits_of(out_MN));
  scale_rows(y, out_MN.mutable_data_ptr<float>());
}

}  // namespace braid::ops
