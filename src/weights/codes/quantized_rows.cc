#include "weights/codes/quantized_rows.h"

#include <ATen/ATen.h>

#include "weights/codes/float8.h"
#include "weights/codes/int8.h"

namespace braid {

std::int64_t numbers_quantized_at_once(at::Device device) {
  return device.is_cpu() ? 1 << 19 : 1 << 22;
}

QuantizedRows::QuantizedRows(const Shape& shape, Quantize form, at::Device device) : shape_(shape) {
  const auto width = shape.kept.empty() ? shape.columns : total_count(shape.kept);
  const auto on = at::TensorOptions().device(device);
  codes_ = {.form = form,
            .values_NC = at::empty({shape.rows, width}, on.dtype(type_of_codes(form))),
            .scales_N1 = at::empty({shape.rows, 1}, on.dtype(type_of_scales(form, shape.dtype))),
            .coding = coding_of(form)};
}

void QuantizedRows::add(const Tensor& numbers_RC) {
  const auto made = quantize_rows(numbers_RC.to(shape_.dtype), codes_.form);
  const auto rows = rows_of(codes_, filled_, numbers_RC.size(0));
  copy_columns(rows.values_NC, made.values_NC, shape_.kept);
  Tensor(rows.scales_N1).copy_(made.scales_N1);
  filled_ += numbers_RC.size(0);
}

}  // namespace braid
