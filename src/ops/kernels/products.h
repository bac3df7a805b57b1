// The innermost loops of matrix products, on operands that lie ready in a core's caches. Compiled
// once for each instruction set; see rows.cc for why nothing else is in those files.
#pragma once

#include <cstdint>

namespace braid::ops {

// A panel that is not packed: its words lie in runs of so many as a panel's depth is a multiple of
// (kRun). Run i begins at words + runs[i], and a word's columns are `stride` after the word before.
struct GatheredWords {
  const float* words;
  const std::int64_t* runs;
  std::int64_t stride;
};

// Operands come in words of 32 bits: bfloat16 numbers widened to floats, or two as they are; codes
// in pairs of 16 bits, or four as they are. A panel holds `columns` rows of a weight [N C], turned
// around: for each word of c the words of all columns, one after the other. Panels and runs of x
// are filled up with 0 to whole words, and to a multiple of kRun words where the kernels ask for
// it. Panels and sums begin at multiples of 64 bytes, and rows of sums at multiples of a vector.
struct ProductKernels {
  static constexpr int kRun = 16, kTurned = 16;

  // Row n of the weight, in bfloat16 or codes, begins at row + n * stride; scaled codes are
  // multiplied by the scales of their rows and rounded to bfloat16. Of the panel's columns the
  // first `count` are filled, the others 0. Depths are in numbers.
  using PackHalves = void(const std::uint16_t* row, std::int64_t stride, std::int64_t count,
                          std::int64_t depth, float* panel);
  using PackScaledCodes = void(const std::int8_t* row, std::int64_t stride, const float* scales,
                               std::int64_t count, std::int64_t depth, float* panel);
  using PackCodes = void(const std::int8_t* row, std::int64_t stride, std::int64_t count,
                         std::int64_t depth, std::int32_t* panel);
  // A run of x as the products take it.
  using TakeHalves = void(const std::uint16_t* x, std::int64_t depth, float* words);
  using TakeCodes = void(const std::int8_t* x, std::int64_t depth, std::int32_t* words);
  // sums[m][n] += x[m][..depth] panel[..depth][n] for `rows` rows, at most as many as are named.
  // Depths and strides are in words.
  using MultiplyHalves = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                              const float* panel, std::int64_t depth, float* sums,
                              std::int64_t sums_stride);
  using MultiplyCodes = void(const std::int32_t* x, std::int64_t x_stride, std::int64_t rows,
                             const std::int32_t* panel, std::int64_t depth, std::int32_t* sums,
                             std::int64_t sums_stride);
  // sums[m] = x[m] . one row of the weight, for `rows` rows of x, at most as many as are named.
  using DotHalves = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                         const std::uint16_t* weight, std::int64_t depth, float* sums);
  using DotScaledCodes = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                              const std::int8_t* weight, float scale, std::int64_t depth,
                              float* sums);
  // multiply_halves() by such a panel.
  using MultiplyGathered = void(const float* x, std::int64_t x_stride, std::int64_t rows,
                                const GatheredWords& panel, std::int64_t depth, float* sums,
                                std::int64_t sums_stride);
  // A row of the weight as `turned` kernels take it.
  using TakeScaledCodes = void(const std::int8_t* row, float scale, std::int64_t depth,
                               float* words);
  // kTurned columns of `rows` rows of sums, or a few rows more, become rows.
  using Turn = void(const void* sums, std::int64_t stride, std::int64_t rows, void* out,
                    std::int64_t out_stride);
  // Finished sums [count] as numbers: rounded to bfloat16, to nearest, ties to even.
  using Narrow = void(const float* sums, std::int64_t count, std::uint16_t* out);

  int columns;     // of a panel
  int rows;        // of x that Multiply takes at once
  int block_rows;  // of x that a core keeps in its second cache, a multiple of `rows`
  int depth;       // in words, of a panel that a core keeps in its first cache: divides 512
  int dot_rows;    // that Dot takes at once
  int halves_per_word, codes_per_word;
  int code_shift = 0;  // what pack_codes adds to each code of the weight

  PackHalves* pack_halves;
  PackScaledCodes* pack_scaled_codes;
  PackCodes* pack_codes;
  TakeHalves* take_halves;
  TakeCodes* take_codes;
  MultiplyHalves* multiply_halves;
  MultiplyCodes* multiply_codes;
  DotHalves* dot_halves;
  DotScaledCodes* dot_scaled_codes;
  Narrow* narrow;
  // For kernels that multiply the weight from the left, as it lies, by panels of x, which costs
  // less than to pack it; else null.
  TakeScaledCodes* take_scaled_codes = nullptr;
  Turn* turn = nullptr;
  MultiplyGathered* multiply_gathered = nullptr;
  bool is_turned() const { return turn != nullptr; }
};

// The best that this machine can run.
const ProductKernels& product_kernels();

// Whether products of small integers, all sums of which are exact, are what they should be.
bool are_right(const ProductKernels& kernels);

// Whether they are products of tiles (Intel AMX).
bool has_tiles();

// Whether LibTorch has no faster products of bfloat16: where it has instructions for them, ours
// have too, but on processors that are not x86.
bool leads_in_bfloat16();

// All that it can run, one after the other from number 0, the best last; none after it.
struct NamedProducts {
  const char* name;
  const ProductKernels* kernels;
};
NamedProducts runnable_products(int number);
const char* name_of_best_products();

}  // namespace braid::ops
