// Codes of rows that are quantized some megabytes at a time, so that numbers never lie beside all
// of their codes.
#pragma once

#include "weights/matrix.h"
#include "weights/sources/row_ranges.h"

namespace braid {

// How many numbers are best quantized at once: a GPU starts some kernels per run, a CPU keeps a run
// in its cache.
std::int64_t numbers_quantized_at_once(at::Device device);

class QuantizedRows {
 public:
  struct Shape {
    std::int64_t rows, columns;         // of the whole rows
    std::vector<Share> kept = {};       // columns of these; none: all
    at::ScalarType dtype = at::kFloat;  // that the numbers are first rounded to
  };
  QuantizedRows(const Shape& shape, Quantize form, at::Device device);

  // The next rows [R C], of all columns. Whole rows are quantized and then the wanted columns kept,
  // so a share has the codes of one device. Codes and scales have the same bits on every device.
  void add(const Tensor& numbers_RC);
  const Matrix& codes() const { return codes_; }

 private:
  Shape shape_;
  Matrix codes_;
  std::int64_t filled_ = 0;  // rows
};

}  // namespace braid
