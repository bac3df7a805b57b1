// Weights kept as stored in a file, for CPUs.
#pragma once

#include "ops/cpu/blocked_product.h"
#include "weights/matrix.h"

namespace braid::ops {

// Decodes to the dtype of `out_NC`: float32 or bfloat16.
void decode_on_cpu(const Matrix& matrix, const Tensor& out_NC);

namespace cpu {

// Decodes a matrix's rows, some numbers at a time.
class CodedRows {
 public:
  explicit CodedRows(const Matrix& matrix);  // must outlive this

  void as_bfloat16(std::int64_t row, Range numbers, std::uint16_t* out) const;
  void as_float32(std::int64_t row, Range numbers, float* out) const;
  void prefetch(std::int64_t row, Range numbers) const;  // their bytes, into the first cache

 private:
  template <class Number>
  void read(std::int64_t row, Range numbers, Number* out) const;

  const QuantFormat* coding_;
  const std::uint8_t* bytes_;
  std::int64_t stride_;
  const float* scales_;
};

}  // namespace cpu
}  // namespace braid::ops
