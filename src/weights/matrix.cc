#include "weights/matrix.h"

#include <ATen/ATen.h>

namespace braid {

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
  return map_tensors(matrix, [&](const Tensor& tensor) { return tensor.narrow(0, begin, count); });
}

Matrix columns_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  auto columns = matrix;
  columns.values_NC = matrix.values_NC.narrow(1, begin, count);
  return columns;
}

}  // namespace braid
