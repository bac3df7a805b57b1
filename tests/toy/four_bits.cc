#include "four_bits.h"

#include <ATen/ATen.h>

#include "weights/matrix.h"

namespace braid::toy {
namespace {

constexpr std::int64_t kGroup = 16;

Tensor decode(const Matrix& matrix) {
  const auto& bytes = matrix.values_NC;
  const auto codes = at::stack({bytes.bitwise_and(15), bytes.bitwise_right_shift(4)}, -1);
  const auto groups = codes.to(at::kFloat).view({bytes.size(0), -1, kGroup});
  const auto numbers = (groups - matrix.zeros_NG.to(at::kFloat).unsqueeze(-1)) *
                       matrix.scales_N1.to(at::kFloat).unsqueeze(-1);
  return numbers.flatten(1);
}

}  // namespace

PackedForm four_bits() {
  return {.name = "the toy's 4 bits",
          .tensors = {{"weight_4bit", MatrixTensor::kValues, 2},
                      {"weight_group_scales", MatrixTensor::kScales, kGroup},
                      {"weight_zeros", MatrixTensor::kZeros, kGroup},
                      {"smoothing", MatrixTensor::kSmoothing},
                      {"low_rank_down", MatrixTensor::kDown},
                      {"low_rank_up", MatrixTensor::kUp}},
          .decode = decode};
}

}  // namespace braid::toy
