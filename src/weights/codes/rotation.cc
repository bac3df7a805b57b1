#include "weights/codes/rotation.h"

#include <ATen/ATen.h>

namespace braid {

// The 4 x 4 matrix is [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1] / 2: half the sum minus the opposite
// number. Pairs are added first, as kernels do.
Tensor rotated(const Tensor& numbers_RC, std::int64_t together) {
  auto numbers = numbers_RC;
  for (std::int64_t apart = 1; apart < together; apart *= 4) {
    const auto four = numbers.reshape({-1, 4, apart});
    const auto pairs = four.view({-1, 2, 2, apart});
    const auto sums = pairs.select(2, 0) + pairs.select(2, 1);
    const auto half = (sums.select(1, 0) + sums.select(1, 1)).unsqueeze(1) / 2;
    numbers = half - four.flip(1);
  }
  return numbers.view(numbers_RC.sizes());
}

Quantize form_of_rotated(Quantize asked) {
  const bool are_numbers = asked == Quantize::kInt8 || asked == Quantize::kInt8V1;
  return are_numbers ? Quantize::kInt8 : Quantize::kInt8Dynamic;
}

bool keeps_rotated_codes(Quantize asked) {
  return form_of_rotated(asked) == Quantize::kInt8Dynamic;
}

}  // namespace braid
