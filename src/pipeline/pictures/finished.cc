#include "pipeline/pictures/finished.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include "base/error.h"

namespace braid {

Tensor bytes_of_decoded(const Tensor& decoded_13HW) {
  const auto unit = (decoded_13HW * 0.5 + 0.5).clamp(0, 1);
  return (unit.squeeze(0).permute({1, 2, 0}).to(at::kCPU, at::kFloat) * 255)
      .round()
      .to(at::kByte)
      .contiguous();
}

std::optional<std::string> why_not_finite(const Tensor& decoded_13HW, int picture) {
  // A sum is finite where all of so few and small values are, and needs no other tensor.
  if (decoded_13HW.sum(at::kFloat).isfinite().item<bool>()) return {};
  return text_of("picture ", picture, " has values that are not finite numbers: the model's ",
                 "weights are damaged, or too large for ",
                 c10::getDtypeNames(decoded_13HW.scalar_type()).first);
}

}  // namespace braid
