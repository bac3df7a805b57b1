// Tiles as Intel's manual defines them (Instruction Set Reference, TDPBF16PS and TDPBSSD), for
// machines without them. Throws for anything a CPU would reject.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "halves_of_loops.h"

namespace braid::ops::BRAID_ISA {
namespace {

struct Tiles {
  struct Config {
    std::uint8_t palette, first_row, unused[14];
    std::uint16_t row_bytes[16];
    std::uint8_t rows[16];
  };
  static_assert(sizeof(Config) == 64);
  Config config{};
  std::uint8_t data[8][16][64];
};

inline Tiles& tiles() {
  thread_local Tiles state;
  return state;
}

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

inline void _tile_loadconfig(const void* config) {
  auto& t = tiles();
  std::memcpy(&t.config, config, sizeof t.config);
  std::memset(t.data, 0, sizeof t.data);
  if (t.config.palette == 0) return void(t.config = {});  // as if released
  require(t.config.palette == 1 && t.config.first_row == 0, "no such palette");
  for (int i = 0; i < 16; ++i) {
    require(t.config.rows[i] <= 16 && t.config.row_bytes[i] <= 64, "a tile is too large");
    require(i < 8 || (t.config.rows[i] == 0 && t.config.row_bytes[i] == 0), "there are 8 tiles");
    require((t.config.rows[i] == 0) == (t.config.row_bytes[i] == 0), "a tile is half a tile");
  }
}

inline void _tile_storeconfig(void* config) {
  std::memcpy(config, &tiles().config, sizeof tiles().config);
}

inline void check_configured(int tile) {
  const auto& c = tiles().config;
  require(c.palette == 1 && c.rows[tile] > 0 && c.row_bytes[tile] > 0, "a tile has no shape");
}

inline void _tile_zero(int tile) {
  check_configured(tile);
  std::memset(tiles().data[tile], 0, sizeof tiles().data[tile]);
}

inline void _tile_loadd(int tile, const void* from, std::int64_t stride) {
  check_configured(tile);
  auto& t = tiles();
  std::memset(t.data[tile], 0, sizeof t.data[tile]);
  for (int r = 0; r < t.config.rows[tile]; ++r)
    std::memcpy(t.data[tile][r], static_cast<const char*>(from) + r * stride,
                t.config.row_bytes[tile]);
}
constexpr auto* _tile_stream_loadd = &_tile_loadd;

inline void _tile_stored(int tile, void* to, std::int64_t stride) {
  check_configured(tile);
  const auto& t = tiles();
  for (int r = 0; r < t.config.rows[tile]; ++r)
    std::memcpy(static_cast<char*>(to) + r * stride, t.data[tile][r], t.config.row_bytes[tile]);
}

// Calls body(row of the sums, word of x, column, sum, word of x, word of the panel).
template <class Number, class Body>
void for_each_product(int sum, int x, int panel, Body body) {
  for (const int tile : {sum, x, panel}) check_configured(tile);
  require(sum != x && sum != panel && x != panel, "tiles should be three");
  auto& t = tiles();
  const auto& c = t.config;
  require(c.rows[x] == c.rows[sum] && c.row_bytes[x] == 4 * c.rows[panel] &&
              c.row_bytes[panel] == c.row_bytes[sum],
          "shapes of tiles do not fit together");
  for (int m = 0; m < c.rows[sum]; ++m)
    for (int k = 0; k < c.row_bytes[x] / 4; ++k)
      for (int n = 0; n < c.row_bytes[sum] / 4; ++n) {
        Number value;
        std::memcpy(&value, &t.data[sum][m][4 * n], sizeof value);
        body(value, &t.data[x][m][4 * k], &t.data[panel][k][4 * n]);
        std::memcpy(&t.data[sum][m][4 * n], &value, sizeof value);
      }
}

inline float float_of(const std::uint8_t* half) {
  std::uint16_t bits;
  std::memcpy(&bits, half, sizeof bits);
  return __builtin_bit_cast(float, std::uint32_t(bits) << 16);
}

inline void _tile_dpbf16ps(int sum, int x, int panel) {
  for_each_product<float>(sum, x, panel,
                          [](float& to, const std::uint8_t* a, const std::uint8_t* b) {
                            for (const int i : {0, 2}) to += float_of(a + i) * float_of(b + i);
                          });
}

inline void _tile_dpbssd(int sum, int x, int panel) {
  for_each_product<std::int32_t>(
      sum, x, panel, [](std::int32_t& to, const std::uint8_t* a, const std::uint8_t* b) {
        for (int i = 0; i < 4; ++i) to += std::int8_t(a[i]) * std::int8_t(b[i]);
      });
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
