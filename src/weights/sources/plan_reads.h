// What a plan reads: of numbers, possibly more than its shard; of codes and stored forms, the
// parts.
#pragma once

#include "weights/sources/tensor_plan.h"

namespace braid {

// The numbers that are read: whole rows or columns where codes or changes need them; and what of
// these is then cut off, nothing where empty.
Shard shard_read(const TensorPlan& plan);
Shard shard_cut(const TensorPlan& plan);

// A tensor of the result that is taken from files as it is, or converted to `dtype`.
struct StoredPart {
  MatrixTensor which = MatrixTensor::kValues;
  enum class Take { kElements, kRowScales } take = Take::kElements;
  RowRanges ranges;
  std::vector<Share> columns = {};  // of its elements; none: all
  at::ScalarType dtype;
};
std::vector<StoredPart> stored_parts(const TensorPlan& plan);

}  // namespace braid
