#include "weights/codes/float8.h"

#include <ATen/ATen.h>

#include <limits>

namespace braid {
namespace {

constexpr double kLargest = 448;  // e4m3's largest number

}  // namespace

Matrix float8_rows(const Tensor& rows_NC) {
  const auto rows = rows_NC.to(at::kFloat);
  // a tensor, because on a GPU LibTorch divides by a plain number via its reciprocal
  const auto largest = at::full({}, kLargest, rows.options());
  const auto scales = (rows.abs().amax(1, /*keepdim=*/true) / largest)
                          .clamp_min(double(std::numeric_limits<float>::min()));
  const auto codes = (rows / scales).clamp_(-kLargest, kLargest).to(at::kFloat8_e4m3fn);
  return {.form = Quantize::kFloat8,
          .values_NC = codes.view(at::kByte),
          .scales_N1 = scales,
          .coding = coding_of(Quantize::kFloat8)};
}

at::ScalarType type_of_codes(Quantize form) {
  return form == Quantize::kFloat8 ? at::kByte : at::kChar;
}

std::shared_ptr<const QuantFormat> coding_of(Quantize form) {
  static const auto float8 = std::make_shared<const QuantFormat>(
      QuantFormat{.type = ElementType::kFloat8E4M3, .inputs = 0, .columns = {}});
  return form == Quantize::kFloat8 ? float8 : nullptr;
}

}  // namespace braid
