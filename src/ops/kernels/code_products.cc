// Products of codes by fours. Compiled for AVX-512 with VPDPBUSD and, for tests, for any machine
// with fours emulated by loops (BRAID_VECTORS); rows.cc says why nothing else is here.
#include "ops/kernels/vectors/words.h"

#include BRAID_VECTORS

#include "ops/kernels/vectors/register_tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kFourRows = 14, kFourColumns = kVectors * kTile;

// One operand of the instruction is unsigned: the weight, with 128 added to each code. Its padding
// past the end of a row is not 0, but x's is.
constexpr int kShift = 128;
struct ShiftedFours {
  FoursOfCodes codes;
  Eight eight(int64 c) const { return (Eight)((EightWords)codes.eight(c) ^ 0x80808080u); }
  float one(int64 c) const {
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, codes.one(c)) ^ 0x80808080u);
  }
};

void pack_shifted(const int8_t* row, int64 stride, int64 count, int64 depth, int32_t* panel) {
  pack_words<kFourColumns, 4>(
      [&](int64 r) {
        return ShiftedFours{{row + r * stride, depth}};
      },
      count, depth, reinterpret_cast<float*>(panel));
}

struct OfFours {
  using Vector = SixteenInts;
  using Word = int32_t;
  static Vector plus(Vector sums, Word x, Vector columns) {
    return plus_fours(sums, columns, SixteenInts{} + x);
  }
};

}  // namespace

// `vectors` with products of codes by fours.
ProductKernels with_fours(const ProductKernels& vectors);
ProductKernels with_fours(const ProductKernels& vectors) {
  auto kernels = vectors;
  kernels.columns = kFourColumns;
  kernels.rows = kFourRows;
  kernels.codes_per_word = 4;
  kernels.code_shift = kShift;
  kernels.pack_codes = &pack_shifted;
  kernels.take_codes = &take_fours;
  kernels.multiply_codes = &multiply<OfFours, kFourRows>;
  return kernels;
}

}  // namespace braid::ops::BRAID_ISA
