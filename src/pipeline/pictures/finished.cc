#include "pipeline/pictures/finished.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include "base/error.h"

namespace braid {

Tensor unit_values(const Tensor& decoded_13HW) {
  return (decoded_13HW * 0.5 + 0.5).clamp(0, 1).squeeze(0).to(at::kCPU, at::kFloat);
}

Tensor unit_values(const Picture& picture) {
  return at::tensor(picture.rgb).view({picture.height, picture.width, 3}).permute({2, 0, 1}) /
         255.0f;
}

Tensor bytes_of_decoded(const Tensor& decoded_13HW) {
  return (unit_values(decoded_13HW).permute({1, 2, 0}) * 255).round().to(at::kByte).contiguous();
}

std::optional<std::string> why_not_finite(const Tensor& decoded_13HW, int picture) {
  // A sum is finite where all of so few and small values are, and needs no other tensor.
  if (decoded_13HW.sum(at::kFloat).isfinite().item<bool>()) return {};
  return text_of("picture ", picture, " has values that are not finite numbers: the model's ",
                 "weights are damaged, or too large for ",
                 c10::getDtypeNames(decoded_13HW.scalar_type()).first);
}

}  // namespace braid
