// What a model asks of a checkpoint, found by constructing the model without reading anything.
#pragma once

#include <string>
#include <vector>

#include "weights/weights.h"

namespace braid {

// The bytes of a whole tensor as a model keeps it.
std::int64_t bytes_of(const TensorRequest& request, Quantize form);

// One of our tensors, or rows of it, under a checkpoint's name.
struct SpelledTensor {
  std::string name;
  Tensor tensor;
};

// The inverse of loading: splits `matrix` into the tensors that `names` builds it from. They are as
// wide as the table's parts if the counts match, otherwise equal; scales go with their codes.
std::vector<SpelledTensor> spelled(const TensorRequest& request, const Matrix& matrix,
                                   const Names& names, const ShardingTable& shardings);

}  // namespace braid
