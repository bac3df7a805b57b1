// The innermost loops of matrix products, on operands already in a core's caches. Compiled once per
// instruction set; rows.cc says why those files contain nothing else.
#pragma once

#include <cstdint>

namespace braid::ops {

// A panel that is not packed: its words lie in runs of kRun. Run i begins at words + runs[i]; the
// columns of successive words are `stride` apart.
struct GatheredWords {
  const float* words;
  const std::int64_t* runs;
  std::int64_t stride;
};

// Operands come in words of 32 bits: bfloat16 numbers, widened to float or two per word as they
// are; codes, in pairs of 16 bits or four per word as they are. A panel holds `columns` rows of a
// weight [N C], transposed: for each word of c, the words of all columns consecutively. Panels and
// runs of x are padded with 0 to whole words, and to a multiple of kRun words if the kernels
// require it. Panels and sums are aligned to 64 bytes, rows of sums to a vector.
struct ProductKernels {
  static constexpr int kRun = 16, kTurned = 16;

  // Row n of the weight, in bfloat16 or codes, begins at row + n * stride. Scaled codes are
  // multiplied by their rows' scales and rounded to bfloat16. The panel's first `count` columns are
  // filled, the others are 0. Depths are in numbers.
  using PackHalves = void(const std::uint16_t* row, std::int64_t stride, std::int64_t count,
                          std::int64_t depth, float* panel);
  using PackScaledCodes = void(const std::int8_t* row, std::int64_t stride, const float* scales,
                               std::int64_t count, std::int64_t depth, float* panel);
  using PackCodes = void(const std::int8_t* row, std::int64_t stride, std::int64_t count,
                         std::int64_t depth, std::int32_t* panel);
  // Converts a run of x to the products' format.
  using PackA = void(const std::uint16_t* x, std::int64_t depth, float* words);
  using TakeCodes = void(const std::int8_t* x, std::int64_t depth, std::int32_t* words);
  // sums[m][n] += x[m][..depth] panel[..depth][n] for `rows` rows, at most ProductKernels::rows.
  // Depths and strides are in words.
  using MultiplyHalves = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                              const float* panel, std::int64_t depth, float* sums,
                              std::int64_t sums_stride);
  using MultiplyCodes = void(const std::int32_t* x, std::int64_t x_stride, std::int64_t rows,
                             const std::int32_t* panel, std::int64_t depth, std::int32_t* sums,
                             std::int64_t sums_stride);
  // sums[m] = x[m] . one row of the weight, for `rows` rows of x, at most
  // ProductKernels::gemv_rows.
  using DotHalves = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                         const std::uint16_t* weight, std::int64_t depth, float* sums);
  using DotScaledCodes = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                              const std::int8_t* weight, float scale, std::int64_t depth,
                              float* sums);
  // multiply_halves() with such a panel.
  using MultiplyGathered = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                                const GatheredWords& panel, std::int64_t depth, float* sums,
                                std::int64_t sums_stride);
  // Converts a row of the weight to the format of `transposed` kernels.
  using TakeScaledCodes = void(const std::int8_t* row, float scale, std::int64_t depth,
                               float* words);
  // Transposes kTurned columns of `rows` rows of sums; may write a few rows more.
  using Turn = void(const void* sums, std::int64_t stride, std::int64_t rows, void* out,
                    std::int64_t out_stride);
  // Rounds finished sums [count] to bfloat16, to nearest, ties to even.
  using Narrow = void(const float* sums, std::int64_t count, std::uint16_t* out);

  int columns;     // per panel
  int rows;        // of x per call of Multiply
  int block_rows;  // of x that a core keeps in its L2 cache, a multiple of `rows`
  int depth;       // in words, of a panel that a core keeps in its L1 cache: divides 512
  int gemv_rows;   // per call of Dot
  int halves_per_word, codes_per_word;
  int code_shift = 0;  // added to each code of the weight by pack_codes

  PackHalves* pack_halves;
  PackScaledCodes* pack_scaled_codes;
  PackCodes* pack_codes;
  PackA* pack_a;
  TakeCodes* take_codes;
  MultiplyHalves* multiply_halves;
  MultiplyCodes* multiply_codes;
  DotHalves* dot_halves;
  DotScaledCodes* dot_scaled_codes;
  Narrow* narrow;
  // Set for kernels that read the weight in place as the left operand, with panels of x, which
  // costs less than packing the weight; null for others.
  TakeScaledCodes* take_scaled_codes = nullptr;
  Turn* turn = nullptr;
  MultiplyGathered* multiply_gathered = nullptr;
  bool is_transposed() const { return turn != nullptr; }
};

// The best kernels this machine can run.
const ProductKernels& product_kernels();

// Whether products of small integers, whose sums are all exact, come out right.
bool are_right(const ProductKernels& kernels);

// Whether the best kernels use tiles (Intel AMX).
bool has_tiles();

// Whether LibTorch has no faster bfloat16 products: its bfloat16 instructions are also in ours,
// except on processors other than x86.
bool leads_in_bfloat16();

// Kernels this machine can run, numbered from 0, the best last; none past it.
struct NamedProducts {
  const char* name;
  const ProductKernels* kernels;
};
NamedProducts runnable_products(int number);
const char* name_of_best_products();

}  // namespace braid::ops
