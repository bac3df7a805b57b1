// Shared by the files that use tiles, Intel AMX's or emulated by loops.
#pragma once

#include <stdint.h>

#include <cstdint>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kTile = 16;  // rows per tile, and words per row

// A row of a tile.
typedef float Sixteen __attribute__((vector_size(64), may_alias));
typedef int32_t SixteenInts __attribute__((vector_size(64), may_alias));
typedef uint32_t SixteenWords __attribute__((vector_size(64), may_alias));

// The operand of ldtilecfg.
struct alignas(64) Shapes {
  uint8_t palette, first_row, unused[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(Shapes) == 64);

// Strips have this many rows: tiles 0 to 3 are the sums, [upper lower] times [left right]; 4 and 5
// hold x, 6 and 7 a panel. No tile may be empty.
constexpr Shapes shapes_of(std::int64_t rows) {
  const uint8_t upper = uint8_t(rows < kTile ? rows : kTile);
  const uint8_t lower = uint8_t(rows > kTile ? rows - kTile : 1);
  return {.palette = 1,
          .first_row = 0,
          .unused = {},
          .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
          .rows = {upper, upper, lower, lower, upper, lower, kTile, kTile}};
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
