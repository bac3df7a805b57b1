// A share of a matrix's codes, quantised from a checkpoint's numbers or loaded from its codes.
#pragma once

#include <vector>

#include "weights/matrix.h"
#include "weights/sources/pieces.h"

namespace braid {

struct LoadedMatrix {
  Matrix matrix;
  BytesRead read;
};

// Quantises the pieces' rows on the target, some megabytes at a time, first rounding to `dtype`.
// Whole rows are quantised and then the wanted columns kept, so a share has the codes of one
// device. Codes and scales have the same bits on every device.
LoadedMatrix quantize_pieces(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                             at::ScalarType dtype, Quantize form, const Target& target = at::kCPU);

// The wanted columns, concatenated, with the scales of their whole rows; all columns if `columns`
// is empty.
Matrix share_of_columns(const Matrix& matrix, const std::vector<Share>& columns);

// Codes as stored, with the scales of their rows.
LoadedMatrix load_codes(const std::vector<Piece>& codes, const std::vector<Piece>& scales,
                        const std::vector<Share>& columns, Quantize form);

}  // namespace braid
