// Operands and results of dense layers, in the form our own products use.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/cpu/blocked_product.h"
#include "ops/cpu/linear.h"
#include "ops/kernels/products.h"
#include "ops/kernels/rows.h"

namespace braid::ops::cpu {

// Rows of a strided matrix.
template <class Number>
struct RowsOf {
  const Number* data;
  std::int64_t stride;

  explicit RowsOf(const Tensor& t)
      : data(static_cast<const Number*>(t.const_data_ptr())), stride(t.stride(0)) {}
  const Number* row(std::int64_t i, std::int64_t column = 0) const {
    return data + i * stride + column;
  }
};

inline Tensor as_rows(const Tensor& t) {
  const auto rows = t.reshape({-1, t.size(-1)});
  return rows.stride(1) == 1 || rows.size(1) == 1 ? rows : rows.contiguous();
}

inline bool is_bfloat16(const Tensor& t) { return t.scalar_type() == at::kBFloat16; }

// Rows a multiple of this apart compete for the same few sets of a cache.
constexpr std::int64_t kCacheWay = 4096;

// x where it is stored, if its numbers are words of the products. Not if its rows compete in the
// cache: on Zen 4 products with 12,288 inputs were a fifth slower than with copies, those with
// 3,072 a twentieth faster.
template <class Word, class Number>
WordRows<Word> stored_words(const RowsOf<Number>& x, std::int64_t inputs, int numbers_per_word) {
  constexpr std::int64_t kInWord = sizeof(Word) / sizeof(Number);
  const bool are_words = numbers_per_word == kInWord && inputs % kInWord == 0 &&
                         x.stride % kInWord == 0 &&
                         reinterpret_cast<std::uintptr_t>(x.data) % sizeof(Word) == 0;
  if (!are_words || x.stride * std::int64_t(sizeof(Number)) % kCacheWay == 0) return {};
  return {reinterpret_cast<const Word*>(x.data), x.stride / kInWord};
}

// Rows of x or of a weight in the products' word format. Processors fetch a run of memory ahead,
// but not the next row of a wide matrix.
template <class Number, class Word>
auto rows_of(RowsOf<Number> x, void (*take)(const Number*, std::int64_t, Word*)) {
  return [=](Range rows, Range c, Word* to, std::int64_t stride) {
    constexpr std::int64_t kAhead = 4, kInLine = 64 / sizeof(Number);
    for (std::int64_t m = 0; m < rows.count; ++m) {
      const auto* const soon = x.row(rows.begin + m + kAhead, c.begin);
      for (std::int64_t i = 0; i < c.count; i += kInLine) __builtin_prefetch(soon + i);
      take(x.row(rows.begin + m, c.begin), c.count, to + m * stride);
    }
  };
}

// Writes finished sums to a row of y in bfloat16.
class Writer {
 public:
  Writer(const Tensor& y_MN, Finish finish, const ProductKernels& kernels)
      : y_(y_MN), finish_(finish), kernels_(kernels) {}

  void operator()(std::int64_t m, Range n, float* sums) const {
    if (finish_ == Finish::kGelu) row_kernels(RowType::kFloat32).gelu(sums, sums, n.count);
    kernels_.narrow(sums, n.count, static_cast<std::uint16_t*>(place(m, n)));
  }
  void* place(std::int64_t m, Range n) const {
    return static_cast<char*>(y_.mutable_data_ptr()) +
           (m * y_.stride(0) + n.begin) * std::int64_t(y_.element_size());
  }

 private:
  Tensor y_;
  Finish finish_;
  const ProductKernels& kernels_;
};

// A dense layer: y = x times the transposed weight, plus the bias.
struct Layer {
  Tensor x_MC;
  Matrix weight_NC;
  Tensor scales;  // float32 [N]; only for codes
  Tensor bias;    // float32 [N]
  Tensor y_MN;
  Writer write;
  const ProductKernels& kernels;
};

}  // namespace braid::ops::cpu
