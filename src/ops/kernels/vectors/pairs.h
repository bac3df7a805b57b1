// Product steps for pairs of bfloat16 numbers, for files that define plus_pairs().
#pragma once

#include <cstdint>

#include "ops/kernels/vectors/register_tiles.h"
#include "ops/kernels/vectors/tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kStripRows = 14;  // 14 x 2 sums, 2 of the panel, 1 of x: 31 of 32 registers
constexpr int kPanelColumns = kVectors * kTile;

struct OfPairs {
  using Vector = Sixteen;
  using Word = float;
  static Vector plus(Vector sums, Word x, Vector columns) {
    return plus_pairs(sums, SixteenWords{} + __builtin_bit_cast(std::uint32_t, x),
                      (SixteenWords)columns);
  }
};

}  // namespace
}  // namespace braid::ops::BRAID_ISA
