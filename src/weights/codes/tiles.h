// Matrices in tiles of 128 rows and 4 columns, padded to whole tiles: the order in which NVIDIA's
// block-scaled products read scales. docs.nvidia.com/cuda/cublas, "1D Block Scaling Factors Layout"
#pragma once

#include "weights/sources/row_ranges.h"

namespace braid {

std::uint64_t bytes_in_tiles(std::int64_t rows, std::int64_t columns);  // for one-byte elements

// The bytes of the tiles that hold the range's rows.
Bytes tiles_of(const RowRange& range);

// The range's rows in order, in float32.
Tensor rows_of_tiles(const RowRange& range);

}  // namespace braid
