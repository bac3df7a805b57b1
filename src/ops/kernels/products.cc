// Compiled several times, for different instruction sets and into different namespaces (BRAID_ISA),
// with the vectors of that set; see rows.cc.
#include "ops/kernels/products.h"

#include <stdint.h>

#include "ops/kernels/vectors/panels.h"

#include BRAID_VECTORS

#include "ops/kernels/vectors/register_tiles.h"

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kColumns = kVectors * kLanes;
constexpr int kDotRows = 4;

// The source of a panel's words: eight words of a row at once, or one.
struct OfHalves {
  const uint16_t* row;
  Eight eight(int64 c) const { return widened(*(const EightHalves*)(row + c)); }
  float one(int64 c) const { return __builtin_bit_cast(float, uint32_t(row[c]) << 16); }
};
struct OfScaledCodes {
  const int8_t* row;
  float scale;
  Eight eight(int64 c) const {
    const auto codes = __builtin_convertvector(*(const EightCodes*)(row + c), EightInts);
    return rounded(__builtin_convertvector(codes, Eight) * scale);
  }
  float one(int64 c) const { return rounded(Eight{} + float(row[c]) * scale)[0]; }
};
// c counts pairs; an odd last number is paired with 0.
struct OfPairs {
  const int8_t* row;
  int64 length;
  Eight eight(int64 c) const {
    return (Eight) __builtin_convertvector(*(const SixteenCodes*)(row + 2 * c), SixteenShorts);
  }
  float one(int64 c) const {
    const int high = 2 * c + 1 < length ? row[2 * c + 1] : 0;
    const uint32_t pair = uint32_t(uint16_t(row[2 * c])) | uint32_t(uint16_t(high)) << 16;
    return __builtin_bit_cast(float, pair);
  }
};

void pack_halves(const uint16_t* row, int64 stride, int64 count, int64 depth, float* panel) {
  pack<kColumns>([&](int64 r) { return OfHalves{row + r * stride}; }, count, depth, depth / 8 * 8,
                 panel);
}

void pack_scaled_codes(const int8_t* row, int64 stride, const float* scales, int64 count,
                       int64 depth, float* panel) {
  pack<kColumns>(
      [&](int64 r) {
        return OfScaledCodes{row + r * stride, scales[r]};
      },
      count, depth, depth / 8 * 8, panel);
}

void pack_codes(const int8_t* row, int64 stride, int64 count, int64 depth, int32_t* panel) {
  pack<kColumns>(
      [&](int64 r) {
        return OfPairs{row + r * stride, depth};
      },
      count, (depth + 1) / 2, depth / 16 * 8, reinterpret_cast<float*>(panel));
}

void pack_a(const uint16_t* x, int64 depth, float* wide) {
  int64 c = 0;
  for (; c + 8 <= depth; c += 8) *(Eight*)(wide + c) = widened(*(const EightHalves*)(x + c));
  for (; c < depth; ++c) wide[c] = OfHalves{x}.one(c);
}

void take_codes(const int8_t* x, int64 depth, int32_t* pairs) {
  const OfPairs row{x, depth};
  int64 c = 0;
  for (; 2 * c + 16 <= depth; c += 8) *(EightInts*)(pairs + c) = (EightInts)row.eight(c);
  for (; 2 * c < depth; ++c) pairs[c] = __builtin_bit_cast(int32_t, row.one(c));
}

// ---------------------------------------------------------------------------------- products

struct OfFloats {
  using Vector = Floats;
  using Word = float;
  static Vector plus(Vector sums, Word x, Vector columns) { return sums + x * columns; }
};
struct OfPairsOfCodes {
  using Vector = Ints;
  using Word = int32_t;
  static Vector plus(Vector sums, Word x, Vector columns) {
    return sums + pair_products(Ints{} + x, columns);
  }
};

// -------------------------------------------------------------------------------- few tokens

inline float total(Eight x) {
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  return sum;
}

template <int kRows, class Row>
void gemv_rows(const float* x, int64 x_stride, int64 rows, Row weight, int64 depth, float* sums) {
  if constexpr (kRows > 1)
    if (rows < kRows) return gemv_rows<kRows - 1>(x, x_stride, rows, weight, depth, sums);
  Eight even[kRows] = {}, odd[kRows] = {};
  int64 c = 0;
  for (; c + 16 <= depth; c += 16) {
    const Eight w = weight.eight(c), v = weight.eight(c + 8);
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
      even[m] += w * *(const Eight*)(x + m * x_stride + c);
      odd[m] += v * *(const Eight*)(x + m * x_stride + c + 8);
    }
  }
  for (int m = 0; m < kRows; ++m) {
    float sum = total(even[m] + odd[m]);
    for (int64 rest = c; rest < depth; ++rest) sum += weight.one(rest) * x[m * x_stride + rest];
    sums[m] = sum;
  }
}

void dot_halves(const float* x, int64 x_stride, int64 rows, const uint16_t* weight, int64 depth,
                float* sums) {
  gemv_rows<kDotRows>(x, x_stride, rows, OfHalves{weight}, depth, sums);
}

void dot_scaled_codes(const float* x, int64 x_stride, int64 rows, const int8_t* weight, float scale,
                      int64 depth, float* sums) {
  gemv_rows<kDotRows>(x, x_stride, rows, OfScaledCodes{weight, scale}, depth, sums);
}

void narrow(const float* sums, int64 count, uint16_t* out) {
#pragma omp simd
  for (int64 i = 0; i < count; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, sums[i]);
    const uint32_t up = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    out[i] = uint16_t((bits & 0x7fffffff) <= 0x7f800000 ? up : 0x7fc0);
  }
}

}  // namespace

extern const ProductKernels kProducts;
const ProductKernels kProducts = {
    .columns = kColumns,
    .rows = kTileRows,
    .block_rows = 16 * kTileRows,
    .depth = 256,
    .gemv_rows = kDotRows,
    .halves_per_word = 1,
    .codes_per_word = 2,
    .pack_halves = &pack_halves,
    .pack_scaled_codes = &pack_scaled_codes,
    .pack_codes = &pack_codes,
    .pack_a = &pack_a,
    .take_codes = &take_codes,
    .multiply_halves = &multiply<OfFloats, kTileRows>,
    .multiply_codes = &multiply<OfPairsOfCodes, kTileRows>,
    .dot_halves = &dot_halves,
    .dot_scaled_codes = &dot_scaled_codes,
    .narrow = &narrow,
};

}  // namespace braid::ops::BRAID_ISA
