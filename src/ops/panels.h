// Panels of rows in which a GPU decodes a weight: the numbers of a whole one would take more memory
// than what is stored.
#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::ops {

// A panel this small stays in the second cache of large GPUs (40 MB and more) until it multiplies,
// and is large enough to keep them busy.
constexpr std::int64_t kPanelBytes = 32 << 20;

// How many of a weight's rows are decoded at a time, in multiples of a product's tiles.
constexpr std::int64_t rows_per_panel(std::int64_t rows, std::int64_t row_bytes) {
  constexpr std::int64_t kTile = 256;
  const auto most = kPanelBytes / std::max<std::int64_t>(1, row_bytes) / kTile * kTile;
  return std::min(rows, std::max(most, kTile));
}

}  // namespace braid::ops
