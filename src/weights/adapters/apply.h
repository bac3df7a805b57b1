// Applies adapters' changes to the share of a tensor that a rank holds.
#pragma once

#include "weights/adapters/change.h"

namespace braid {

// The rows or columns of a share, concatenated; all of them if none are named.
Tensor taken_rows(const Tensor& numbers, const std::vector<Share>& rows);
Tensor taken_columns(const Tensor& rows, const std::vector<Share>& columns);

// Changes the wanted share of a tensor in place; float32. It must have all rows or columns if the
// changes need them.
void apply(const std::vector<Change>& changes, const Wanted& wanted, const Tensor& share);

}  // namespace braid
