#include "weights/survey.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/row_parts.h"

namespace braid {
namespace {

// Puts our rows in the order in which they are stored.
Tensor reordered(const Tensor& tensor, const RowOrder& order) {
  if (order.way == RowOrder::kAsStored) return tensor;
  if (order.way == RowOrder::kFlattened) return tensor.flatten();
  const auto stored = at::empty_like(tensor);
  std::int64_t row = 0;
  for (const auto& run : runs_in(order, tensor.size(0))) {
    stored.narrow(0, run.begin, run.count).copy_(tensor.narrow(0, row, run.count));
    row += run.count;
  }
  return stored;
}

}  // namespace

std::int64_t bytes_of(const TensorRequest& request, Quantize form) {
  const auto rows = request.shape.empty() ? 1 : request.shape[0];
  const auto width = c10::multiply_integers(request.shape) / std::max<std::int64_t>(1, rows);
  const auto kept = kept_tensors(request.is_matrix() ? form : Quantize::kNone, request.dtype);
  return bytes_of(kept, width, rows, {});
}

std::vector<SpelledTensor> spelled(const TensorRequest& request, const Matrix& matrix,
                                   const Names& names, const ShardingTable& shardings) {
  const auto origin = origins_of(names, request.path()).front();
  const auto count = origin.tensors.size();
  std::vector<SpelledTensor> out;
  const auto add = [&](const Tensor& tensor, const std::string& suffix) {
    const auto whole = reordered(tensor, origin.order);
    if (count == 1) {
      out.push_back({origin.tensors[0] + suffix, whole});
      return;
    }
    const auto rows = whole.dim() == 0 ? 1 : whole.size(0);
    const auto parts =
        whole.split_with_sizes(row_parts(request.layer, rows, count, shardings, origin.parts), 0);
    for (std::size_t i = 0; i < count; ++i) out.push_back({origin.tensors[i] + suffix, parts[i]});
  };
  check(!matrix.is_packed(), request.path(), " is written as numbers, not as it is packed");
  add(matrix.values_NC, "");
  if (matrix.scales_N1.defined()) add(matrix.scales_N1, "_scale");
  return out;
}

}  // namespace braid
