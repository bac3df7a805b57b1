// Weights that lie in memory as a file has them, for CPUs.
#pragma once

#include "ops/cpu/blocked_product.h"
#include "weights/matrix.h"

namespace braid::ops {

// The numbers, rounded to the dtype of `out_NC`: float32 or bfloat16.
void decode_on_cpu(const Matrix& matrix, const Tensor& out_NC);

namespace cpu {

// Its rows, some numbers at a time.
class CodedRows {
 public:
  explicit CodedRows(const Matrix& matrix);  // which outlives it

  void as_bfloat16(std::int64_t row, Range numbers, std::uint16_t* out) const;
  void as_float32(std::int64_t row, Range numbers, float* out) const;

 private:
  template <class Number, class Scale>
  void read(std::int64_t row, Range numbers, Number* out, Scale scale) const;

  const Coding* coding_;
  std::int64_t inputs_;
  const std::uint8_t* bytes_;
  std::int64_t stride_;
  const float* scales_;
};

}  // namespace cpu
}  // namespace braid::ops
