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

Matrix to(const Matrix& matrix, at::Device device, Blocking blocking) {
  return map_tensors(matrix, [&](const Tensor& tensor) {
    return tensor.to(tensor.options().device(device), blocking == Blocking::kNo);
  });
}

Matrix pinned(const Matrix& matrix) {
  return map_tensors(matrix, [](const Tensor& tensor) { return tensor.pin_memory(); });
}

void record_stream(const Matrix& matrix, c10::Stream stream) {
  for_each_tensor(matrix, [&](const Tensor& tensor) { tensor.record_stream(stream); });
}

Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  auto rows = matrix;
  for (auto* const tensor : {&rows.values_NC, &rows.scales_N1, &rows.zeros_NG, &rows.up_NR})
    if (tensor->defined()) *tensor = tensor->narrow(0, begin, count);
  return rows;
}

Matrix columns_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  auto columns = matrix;
  columns.values_NC = matrix.values_NC.narrow(1, begin, count);
  return columns;
}

}  // namespace braid
