// Applies adapters' changes to the shard of a tensor that a rank holds.
#pragma once

#include "weights/adapters/change.h"

namespace braid {

// Changes a shard of a tensor in place; float32. It must have all rows or columns if the changes
// need them.
void apply(const std::vector<Change>& changes, const Shard& shard, const Tensor& numbers);

}  // namespace braid
