#include "weights/codes/tiles.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Element (32 i + j, k) of a tile is at (j, i, k): 32 rows of 4 times 4.
constexpr std::int64_t kInTurn = 32, kTileRows = 4 * kInTurn, kTileColumns = 4;

std::int64_t tiles_for(std::int64_t extent, std::int64_t tile) {
  return extent / tile + (extent % tile > 0);
}

Share tile_rows_of(const RowRange& range) {
  const auto first = range.rows.begin / kTileRows;
  return {.begin = first,
          .count = tiles_for(range.rows.begin + range.rows.count, kTileRows) - first};
}

}  // namespace

std::uint64_t bytes_in_tiles(std::int64_t rows, std::int64_t columns) {
  return std::uint64_t(tiles_for(rows, kTileRows)) * kTileRows *
         std::uint64_t(tiles_for(columns, kTileColumns)) * kTileColumns;
}

Bytes tiles_of(const RowRange& range) {
  const auto& entry = range.stored->entry;
  const auto each = bytes_in_tiles(kTileRows, entry.shape[1]);
  const auto rows = tile_rows_of(range);
  return {entry.begin + std::uint64_t(rows.begin) * each, std::uint64_t(rows.count) * each};
}

Tensor rows_of_tiles(const RowRange& range) {
  auto stored = *range.stored;
  const auto columns = stored.entry.shape[1];
  const auto rows = tile_rows_of(range);
  stored.entry.begin = tiles_of(range).begin;
  stored.entry.shape = {rows.count, tiles_for(columns, kTileColumns), kInTurn, kTileRows / kInTurn,
                        kTileColumns};
  const auto in_rows = stored.stored_view().permute({0, 3, 2, 1, 4}).to(at::kFloat);
  return in_rows.reshape({rows.count * kTileRows, -1})
      .narrow(0, range.rows.begin - rows.begin * kTileRows, range.rows.count)
      .narrow(1, 0, columns);
}

}  // namespace braid
