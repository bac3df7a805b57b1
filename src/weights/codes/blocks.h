// The numbers that codes stand for: the reference definition.
#pragma once

#include "weights/sources/row_ranges.h"

namespace braid {

// Decodes the rows of `range`, which is coded, to float32, scales included. Uses all threads.
Tensor decoded(const RowRange& range);

// The rows of its scales that belong to a range, or their only row.
RowRange scales_of(const RowRange& range);

// Decodes blocks of this type, not a scale's.
void decode_blocks(ElementType type, const std::uint8_t* blocks, std::int64_t count, float* out);

}  // namespace braid
