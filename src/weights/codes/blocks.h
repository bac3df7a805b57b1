// The numbers that codes stand for: the reference definition.
#pragma once

#include "weights/sources/pieces.h"

namespace braid {

// Decodes the rows of `piece`, which is coded, to float32, scales included. Uses all threads.
Tensor decoded(const Piece& piece);

// The rows of its scales that belong to a piece, or their only row.
Piece scales_of(const Piece& piece);

// Decodes blocks of this type, not a scale's.
void decode_blocks(ElementType type, const std::uint8_t* blocks, std::int64_t count, float* out);

}  // namespace braid
