#include "weights/codes/tiles.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Element (32 i + j, k) of a tile is at (j, i, k): 32 rows of 4 times 4.
constexpr std::int64_t kInTurn = 32, kTileRows = 4 * kInTurn, kTileColumns = 4;

std::int64_t tiles_for(std::int64_t extent, std::int64_t tile) {
  return extent / tile + (extent % tile > 0);
}

Share tile_rows_of(const Piece& piece) {
  const auto first = piece.rows.begin / kTileRows;
  return {.begin = first,
          .count = tiles_for(piece.rows.begin + piece.rows.count, kTileRows) - first};
}

}  // namespace

std::uint64_t bytes_in_tiles(std::int64_t rows, std::int64_t columns) {
  return std::uint64_t(tiles_for(rows, kTileRows)) * kTileRows *
         std::uint64_t(tiles_for(columns, kTileColumns)) * kTileColumns;
}

Bytes tiles_of(const Piece& piece) {
  const auto& entry = piece.stored->entry;
  const auto each = bytes_in_tiles(kTileRows, entry.shape[1]);
  const auto rows = tile_rows_of(piece);
  return {entry.begin + std::uint64_t(rows.begin) * each, std::uint64_t(rows.count) * each};
}

Tensor rows_of_tiles(const Piece& piece) {
  auto stored = *piece.stored;
  const auto columns = stored.entry.shape[1];
  const auto rows = tile_rows_of(piece);
  stored.entry.begin = tiles_of(piece).begin;
  stored.entry.shape = {rows.count, tiles_for(columns, kTileColumns), kInTurn, kTileRows / kInTurn,
                        kTileColumns};
  const auto in_rows = stored.view().permute({0, 3, 2, 1, 4}).to(at::kFloat);
  return in_rows.reshape({rows.count * kTileRows, -1})
      .narrow(0, piece.rows.begin - rows.begin * kTileRows, piece.rows.count)
      .narrow(1, 0, columns);
}

}  // namespace braid
