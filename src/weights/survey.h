// What a model asks of a checkpoint, found by making the model without reading anything.
#pragma once

#include <string>
#include <vector>

#include "weights/weights.h"

namespace braid {

// The bytes that `asked` takes as a model keeps it.
std::int64_t bytes_of(const AskedTensor& asked, Quantize form);

// A tensor of ours under the names and in the rows of a checkpoint.
struct SpelledTensor {
  std::string name;
  Tensor tensor;
};

// The inverse of loading: `matrix` is split into the tensors that `names` makes it of, as wide as
// the table's parts where these are as many, else all alike; scales beside their codes.
std::vector<SpelledTensor> spelled(const AskedTensor& asked, const Matrix& matrix,
                                   const Names& names, const ShardingTable& shardings);

}  // namespace braid
