// Sums of some rows of x times a panel, kept in registers. For files compiled once per instruction
// set (BRAID_ISA).
#pragma once

#include <cstdint>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kVectors = 2;  // per panel row

enum class Sums { kAdd, kSet };

// A Step adds the products of a word of x and a vector of the panel to a vector of sums.
template <class Step, int kRows, Sums kSums = Sums::kAdd>
void add_tile(const typename Step::Word* x, std::int64_t x_stride, const typename Step::Word* panel,
              std::int64_t depth, typename Step::Word* sums, std::int64_t sums_stride) {
  using Vector = typename Step::Vector;
  constexpr int kLanes = sizeof(Vector) / sizeof(typename Step::Word);
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sum[m][v] =
          kSums == Sums::kSet ? Vector{} : *(const Vector*)(sums + m * sums_stride + v * kLanes);
  const auto add = [&](std::int64_t c) __attribute__((always_inline)) {
    const auto* const columns = (const Vector*)(panel + c * kVectors * kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sum[m][v] = Step::plus(sum[m][v], x[m * x_stride + c], columns[v]);
  };
  std::int64_t c = 0;
  for (; c < depth - kRows; ++c) add(c);
  for (auto* next = sums + kRows * sums_stride; c < depth; ++c, next += sums_stride) {
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(next + v * kLanes, 1);
    add(c);
  }
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) *(Vector*)(sums + m * sums_stride + v * kLanes) = sum[m][v];
}

// Multiplies a tile of `rows` rows, at most kRows.
template <class Step, int kRows>
void multiply(const typename Step::Word* x, std::int64_t x_stride, std::int64_t rows,
              const typename Step::Word* panel, std::int64_t depth, typename Step::Word* sums,
              std::int64_t sums_stride) {
  if constexpr (kRows > 1)
    if (rows < kRows)
      return multiply<Step, kRows - 1>(x, x_stride, rows, panel, depth, sums, sums_stride);
  add_tile<Step, kRows>(x, x_stride, panel, depth, sums, sums_stride);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA
