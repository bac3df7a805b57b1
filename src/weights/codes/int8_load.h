// A share of a matrix's codes, from numbers in a checkpoint or from codes in one.
#pragma once

#include <vector>

#include "weights/matrix.h"
#include "weights/sources/pieces.h"

namespace braid {

struct LoadedMatrix {
  Matrix matrix;
  BytesRead read;
};

// Quantises the pieces' rows a few megabytes at a time; whole rows, of which the wanted columns are
// kept: the codes of a share are those of one device. Numbers are first rounded to `dtype`.
LoadedMatrix quantize_pieces(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                             at::ScalarType dtype, Quantize form);

// The wanted columns, one run after the other, with the scales of their whole rows; all of them if
// there are none.
Matrix share_of_columns(const Matrix& matrix, const std::vector<Share>& columns);

// Codes as they are stored, with the scales of their rows.
LoadedMatrix load_codes(const std::vector<Piece>& codes, const std::vector<Piece>& scales,
                        const std::vector<Share>& columns, Quantize form);

}  // namespace braid
