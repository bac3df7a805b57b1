// The numbers that codes stand for: the definition.
#pragma once

#include "weights/sources/pieces.h"

namespace braid {

// Those of the piece's rows, float32, times their scales; `piece` is coded. All threads decode.
Tensor decoded(const Piece& piece);

// The rows of its scales that a piece has, or their only one.
Piece scales_of(const Piece& piece);

// A loop that decodes blocks of this type: not of a scale.
void decode_blocks(ElementType type, const std::uint8_t* blocks, std::int64_t count, float* out);

}  // namespace braid
