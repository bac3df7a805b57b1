#include "weights/packed_form.h"

#include <algorithm>

namespace braid {

Cell cell_of(MatrixTensor which, std::int64_t columns) {
  switch (which) {
    case MatrixTensor::kSmoothing:
    case MatrixTensor::kDown:
      return {.rows = 0, .columns = 1};
    case MatrixTensor::kUp:
      return {.rows = 1, .columns = 0};
    case MatrixTensor::kValues:
    case MatrixTensor::kScales:
    case MatrixTensor::kZeros:
      break;
  }
  return {.rows = 1, .columns = columns};
}

bool multiplies_tokens(MatrixTensor which) {
  return which == MatrixTensor::kSmoothing || which == MatrixTensor::kDown ||
         which == MatrixTensor::kUp;
}

std::int64_t PackedForm::group() const {
  std::int64_t most = 1;
  for (const auto& tensor : tensors) most = std::max(most, tensor.columns);
  return most;
}

const PackedTensor* PackedForm::find(MatrixTensor which) const {
  const auto it = std::find_if(tensors.begin(), tensors.end(),
                               [&](const PackedTensor& tensor) { return tensor.which == which; });
  return it == tensors.end() ? nullptr : &*it;
}

}  // namespace braid
