#include "pipeline/pictures/finished.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include "base/error.h"

namespace braid {

Tensor unit_values(const Tensor& decoded_1CHW) {
  return (decoded_1CHW * 0.5 + 0.5).clamp(0, 1).squeeze(0).to(at::kCPU, at::kFloat);
}

Tensor unit_values(const Picture& picture) {
  const auto planes = [&](const std::vector<std::uint8_t>& bytes) {
    return at::tensor(bytes).view({picture.height, picture.width, -1}).permute({2, 0, 1});
  };
  auto bytes_CHW = planes(picture.rgb);
  if (!picture.alpha.empty()) bytes_CHW = at::cat({bytes_CHW, planes(picture.alpha)});
  return bytes_CHW / 255.0f;
}

DecodedBytes bytes_of_decoded(const Tensor& decoded_1CHW) {
  const auto bytes_HWC = (unit_values(decoded_1CHW).permute({1, 2, 0}) * 255).round().to(at::kByte);
  const auto channels = [&](std::int64_t first, std::int64_t count) {
    const auto some = bytes_HWC.narrow(2, first, count).contiguous();
    const auto* const data = some.const_data_ptr<std::uint8_t>();
    return std::vector<std::uint8_t>(data, data + some.numel());
  };
  const bool has_alpha = bytes_HWC.size(2) == 4;
  return {.width = int(bytes_HWC.size(1)),
          .height = int(bytes_HWC.size(0)),
          .rgb = channels(0, 3),
          .alpha = channels(3, has_alpha ? 1 : 0)};
}

std::optional<std::string> why_not_finite(const Tensor& decoded_1CHW, int picture) {
  // A sum is finite where all of so few and small values are, and needs no other tensor.
  if (decoded_1CHW.sum(at::kFloat).isfinite().item<bool>()) return {};
  return text_of("picture ", picture, " has values that are not finite numbers: the model's ",
                 "weights are damaged, or these or the scales asked for (of guidance, of ",
                 "adapters) are too large for ",
                 c10::getDtypeNames(decoded_1CHW.scalar_type()).first);
}

}  // namespace braid
