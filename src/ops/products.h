// The innermost loops of matrix products, on operands that lie ready in a core's caches. Compiled
// once for each instruction set; see rows.cc for why nothing else is in those files.
#pragma once

#include <cstdint>

namespace braid::ops {

// A panel holds `columns` rows of a weight [N C], turned around: for each c the numbers of all
// columns, one after the other. Integers go in pairs of 16 bits, for each two c one word a column.
// Panels and sums begin at multiples of 64 bytes, and rows of sums at multiples of a vector.
struct ProductKernels {
  // Row n of the weight, in bfloat16 or codes, begins at row + n * stride; codes are multiplied by
  // the scales of their rows and rounded to bfloat16. Of the panel's columns the first `count` are
  // filled, the others 0.
  using PackHalves = void(const std::uint16_t* row, std::int64_t stride, std::int64_t count,
                          std::int64_t depth, float* panel);
  using PackCodes = void(const std::int8_t* row, std::int64_t stride, const float* scales,
                         std::int64_t count, std::int64_t depth, float* panel);
  using PackPairs = void(const std::int8_t* row, std::int64_t stride, std::int64_t count,
                         std::int64_t depth, std::int32_t* panel);
  // A run of x as the products take it.
  using Widen = void(const std::uint16_t* x, std::int64_t depth, float* wide);
  using Pair = void(const std::int8_t* x, std::int64_t depth, std::int32_t* pairs);
  // sums[m][n] += x[m][..depth] panel[..depth][n] for `rows` rows, at most as many as are named.
  using Multiply = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                        const float* panel, std::int64_t depth, float* sums,
                        std::int64_t sums_stride);
  using MultiplyPairs = void(const std::int32_t* x, std::int64_t x_stride, std::int64_t rows,
                             const std::int32_t* panel, std::int64_t depth, std::int32_t* sums,
                             std::int64_t sums_stride);
  // sums[m] = x[m] . one row of the weight, for `rows` rows of x, at most as many as are named.
  using DotHalves = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                         const std::uint16_t* weight, std::int64_t depth, float* sums);
  using DotCodes = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                        const std::int8_t* weight, float scale, std::int64_t depth, float* sums);
  // Finished sums [count] as numbers: rounded to bfloat16, to nearest, ties to even.
  using Narrow = void(const float* sums, std::int64_t count, std::uint16_t* out);

  int columns;   // of a panel
  int rows;      // of x that Multiply takes at once
  int dot_rows;  // that Dot takes at once

  PackHalves* pack_halves;
  PackCodes* pack_codes;
  PackPairs* pack_pairs;
  Widen* widen;
  Pair* pair;
  Multiply* multiply;
  MultiplyPairs* multiply_pairs;
  DotHalves* dot_halves;
  DotCodes* dot_codes;
  Narrow* narrow;
};

// The best that this machine can run.
const ProductKernels& product_kernels();

// All that it can run, one after the other from number 0; none after the last.
struct NamedProducts {
  const char* name;
  const ProductKernels* kernels;
};
NamedProducts runnable_products(int number);

}  // namespace braid::ops
