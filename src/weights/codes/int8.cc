#include "weights/codes/int8.h"

#include <ATen/ATen.h>

#include <limits>
#include <tuple>

#include "base/error.h"
#include "weights/codes/as_stored.h"
#include "weights/codes/float8.h"

namespace braid {
namespace {

constexpr double kHalfRange = 127.5;  // of -128 .. 127

Tensor scales_of(const Tensor& rows_NC) {
  const auto largest = at::max(rows_NC.amax(1, /*keepdim=*/true), -rows_NC.amin(1, true));
  // a tensor, because on a GPU LibTorch divides by a plain number via its reciprocal
  const auto half_range = at::full({}, kHalfRange, largest.options());
  return (largest / half_range).clamp_min(double(std::numeric_limits<float>::epsilon()));
}

// The numbers of a coding, with the matrix's own low-rank product and smoothing.
Tensor with_low_rank(const Matrix& matrix, at::ScalarType dtype) {
  const auto& [smoothing, down, up] = std::tie(matrix.smoothing_1C, matrix.down_RC, matrix.up_NR);
  if (!smoothing.defined() && !up.defined()) return decoded(matrix, dtype);
  auto numbers = decoded(matrix, at::kFloat);
  if (up.defined()) numbers = numbers.addmm(up.to(at::kFloat), down.to(at::kFloat));
  return (smoothing.defined() ? numbers / smoothing.to(at::kFloat) : numbers).to(dtype);
}

}  // namespace

Matrix quantize_rows(const Tensor& rows_NC, Quantize form) {
  check(form != Quantize::kNone, "a matrix that is quantized needs a form with codes");
  if (form == Quantize::kFloat8) return float8_rows(rows_NC);
  const auto scales = scales_of(rows_NC);
  const auto kept = form == Quantize::kInt8V1 ? scales : scales.to(at::kFloat);
  auto codes = rows_NC * kept.reciprocal();
  return {
      .form = form, .values_NC = codes.round_().clamp_(-128, 127).to(at::kChar), .scales_N1 = kept};
}

Quantize form_of_codes(Quantize stored, Quantize asked) {
  const bool is_dynamic = stored != Quantize::kInt8V1 && asked == Quantize::kInt8Dynamic;
  return is_dynamic ? Quantize::kInt8Dynamic : stored;
}

Tensor dequantize(const Matrix& matrix, at::ScalarType dtype) {
  if (matrix.coding) return with_low_rank(matrix, dtype);
  if (matrix.form == Quantize::kNone) return matrix.values_NC.to(dtype);
  return (matrix.values_NC.to(at::kFloat) * matrix.scales_N1.to(at::kFloat)).to(dtype);
}

}  // namespace braid
