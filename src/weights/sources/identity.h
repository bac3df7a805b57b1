// What weights are made of and how, in words: the same words, the same weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/memory.h"
#include "weights/sources/pieces.h"

namespace braid {

// 16 hexadecimal digits for the bytes, which all threads read.
std::string digest(std::span<const std::byte> bytes);

// The stored bytes of the pieces, in order, which are read: names, files and places are no part of
// it. Their memory is given back.
std::string identity_of(const std::vector<Piece>& pieces);

// The same of whole stored tensors.
std::string identity_of(const std::vector<StoredTensor>& stored);

// "columns 0+64 128+64"; empty for all of them.
std::string identity_of(const std::vector<Share>& columns);

// What quantising to `form` in `dtype` makes of known numbers: a quantiser that has changed says
// something else.
std::string identity_of(Quantize form, at::ScalarType dtype);

}  // namespace braid
