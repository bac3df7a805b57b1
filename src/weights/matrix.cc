#include "weights/matrix.h"

#include <ATen/ATen.h>

namespace braid {

Tensor& tensor_of(Matrix& matrix, MatrixTensor which) {
  switch (which) {
    case MatrixTensor::kValues:
      break;
    case MatrixTensor::kScales:
      return matrix.scales_N1;
    case MatrixTensor::kZeros:
      return matrix.zeros_NG;
    case MatrixTensor::kSmoothing:
      return matrix.smoothing_1C;
    case MatrixTensor::kDown:
      return matrix.down_RC;
    case MatrixTensor::kUp:
      return matrix.up_NR;
  }
  return matrix.values_NC;
}

Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  auto rows = matrix;
  for (auto* const tensor : {&rows.values_NC, &rows.scales_N1, &rows.zeros_NG, &rows.up_NR})
    if (tensor->defined()) *tensor = tensor->narrow(0, begin, count);
  return rows;
}

}  // namespace braid
