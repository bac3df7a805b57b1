// Weights kept in memory as stored, in blocks or in 8 bits with scales: a share of their rows and
// columns, and the numbers they decode to.
#pragma once

#include <optional>

#include "weights/codes/int8_load.h"

namespace braid {

// The layout of some rows and columns in memory, before they are loaded.
struct KeptRows {
  std::shared_ptr<const QuantFormat> coding;
  std::int64_t rows, row_bytes;
  std::vector<Share> bytes;  // kept byte runs of a stored row; none: all
  bool has_scales;
};

// nullopt unless the pieces are matrices with one coding and at most one scale per row; others must
// be decoded.
std::optional<KeptRows> kept_as_stored(const std::vector<Piece>& pieces,
                                       const std::vector<Share>& columns);

LoadedMatrix load_coded(const std::vector<Piece>& pieces, const KeptRows& kept);

// The reference definition: the numbers of `matrix`, which has a coding, rounded to `dtype`.
Tensor decoded(const Matrix& matrix, at::ScalarType dtype);

}  // namespace braid
