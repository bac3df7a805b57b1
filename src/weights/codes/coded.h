// Weights that stay in memory as a file has them, in blocks or in eight bits with scales: a share
// of their rows and columns, and the numbers that it stands for.
#pragma once

#include <optional>

#include "weights/codes/int8_load.h"

namespace braid {

// How some rows and columns lie in memory, before they are there.
struct KeptRows {
  std::shared_ptr<const Coding> coding;
  std::int64_t rows, row_bytes;
  std::vector<Share> bytes;  // of a stored row, those that are kept; none: all
  bool has_scales;
};

// Nothing where the pieces are no matrices of one coding with a scale a row at most: those have to
// be decoded.
std::optional<KeptRows> kept_as_stored(const std::vector<Piece>& pieces,
                                       const std::vector<Share>& columns);

LoadedMatrix load_coded(const std::vector<Piece>& pieces, const KeptRows& kept);

// The numbers, rounded to `dtype`: the definition. `matrix` has a coding.
Tensor decoded(const Matrix& matrix, at::ScalarType dtype);

}  // namespace braid
