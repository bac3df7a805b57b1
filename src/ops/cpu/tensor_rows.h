// Tensors in the form that loops over rows take.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ops/kernels/rows.h"

namespace braid::ops::cpu {

// `x` is float32 or bfloat16.
inline RowType row_type_of(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? RowType::kFloat32 : RowType::kBfloat16;
}

inline const RowKernels& kernels_of(const at::Tensor& x) { return row_kernels(row_type_of(x)); }

// [begin, begin + count).
struct RowRange {
  std::int64_t begin, count;
};

inline at::Tensor rows_of(const at::Tensor& x_BCHW, RowRange rows) {
  return x_BCHW.narrow(2, rows.begin, rows.count);
}

class Planes {  // one image [C H W] with dense rows
 public:
  explicit Planes(const at::Tensor& x_CHW)
      : data_(static_cast<char*>(const_cast<void*>(x_CHW.const_data_ptr()))),
        number_(std::int64_t(x_CHW.element_size())),
        plane_(x_CHW.stride(0) * number_),
        row_(x_CHW.stride(1) * number_) {}
  char* at(std::int64_t channel, std::int64_t row, std::int64_t column = 0) const {
    return data_ + channel * plane_ + row * row_ + column * number_;
  }
  // Fetches pixels that are soon read or written.
  void prefetch(std::int64_t channel, std::int64_t row, std::int64_t column,
                std::int64_t count) const {
    const char* const from = at(channel, row, column);
    for (std::int64_t i = 0; i < count * number_; i += kLine) __builtin_prefetch(from + i);
  }
  void prefetch_to_write(std::int64_t channel, std::int64_t row, std::int64_t column,
                         std::int64_t count) const {
    const char* const to = at(channel, row, column);
    for (std::int64_t i = 0; i < count * number_; i += kLine) __builtin_prefetch(to + i, 1);
  }

 private:
  static constexpr std::int64_t kLine = 64;  // bytes
  char* data_;
  std::int64_t number_, plane_, row_;
};

}  // namespace braid::ops::cpu
