#include "weights/codes/rotation.h"

#include <ATen/ATen.h>

namespace braid {

// The 4 x 4 matrix is [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1] / 2: half the sum minus the opposite
// number.
Tensor rotated_back(const Tensor& numbers_RC, std::int64_t together) {
  auto numbers = numbers_RC;
  for (std::int64_t apart = 1; apart < together; apart *= 4) {
    const auto four = numbers.reshape({-1, 4, apart});
    numbers = four.sum(1, /*keepdim=*/true) / 2 - four.flip(1);
  }
  return numbers.view(numbers_RC.sizes());
}

}  // namespace braid
