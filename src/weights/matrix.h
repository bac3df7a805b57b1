// A dense layer's weight in any storage form, as one value: operations apply to all of its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "braid/memory.h"
#include "comm/group.h"
#include "weights/files/element_type.h"
#include "weights/packed_form.h"

namespace braid {

using at::Tensor;

// What happens to matrices that files store in codes (blocks, float8, rotated int8, packed forms):
// they are widened to numbers of the load's dtype, or kept as stored, at the file's size.
// kRotatedKept: only rotated int8 codes are kept.
enum class StoredCodes { kWidened, kRotatedKept, kKept };

// How the rows of a matrix that is kept as stored lie in memory.
struct QuantFormat {
  ElementType type;
  std::int64_t inputs;  // C; 0: the number of bytes in a row
  // The runs of a row's decoded numbers that make up C; none: all.
  std::vector<Share> columns = {};
  const PackedForm* packed = nullptr;  // if set, it says what the values are, not `type`
  // Int8 codes of rotated numbers (codes/rotation.h): so many neighbours together; 0: not rotated.
  std::int64_t rotated_together = 0;
};

// A low-rank product added to the weight's, (x A^T * s) B^T, for adapters that are not fused. Empty
// until there is one; always on the device.
struct LowRank {
  Tensor down_RC = {}, scales_R = {}, up_NR = {};
};

// N outputs, C inputs. The product with tokens x [.. C], for numbers W of values, scales and zeros:
//
//   y = t W^T + (t down^T) up^T + what `low_rank` adds of x,   t = x / smoothing
struct Matrix {
  Quantize form = Quantize::kNone;
  Tensor values_NC = {};  // floating-point numbers, or int8 codes: number = code * scale
  // Codes have scales: float32, but the model's dtype for kInt8V1; [N G] for G groups in a packed
  // form.
  Tensor scales_N1 = {};
  // Only in packed forms: zero points of groups, smoothing, and the checkpoint's own low-rank
  // factors, the last two in the model's dtype.
  Tensor zeros_NG = {}, smoothing_1C = {}, down_RC = {}, up_NR = {};
  // If set, values are bytes of this coding, in form kNone or kFloat8, or codes of rotated numbers
  // in form kInt8 or kInt8Dynamic; scales float32 or undefined.
  std::shared_ptr<const QuantFormat> coding = {};
  std::shared_ptr<const LowRank> low_rank = {};

  std::int64_t inputs() const {
    return coding && coding->inputs > 0 ? coding->inputs : values_NC.size(1);
  }
  bool has_low_rank() const { return low_rank && low_rank->up_NR.defined(); }
  bool is_packed() const { return coding && coding->packed; }
  bool is_rotated() const { return coding && coding->rotated_together > 0; }
};

// Calls `visit` with each tensor except those of `low_rank`, in MatrixTensor's order. The binding
// below names all members: a new member does not compile until it is visited too.
template <class M, class Visit>
void for_each_tensor(M& matrix, Visit visit) {
  auto& [form, values, scales, zeros, smoothing, down, up, coding, low_rank] = matrix;
  (void)form;
  (void)coding;
  (void)low_rank;
  for (auto* const tensor : {&values, &scales, &zeros, &smoothing, &down, &up})
    if (tensor->defined()) visit(*tensor);
}

Tensor& tensor_of(Matrix& matrix, MatrixTensor which);

// The matrix with every tensor replaced by `change(tensor)`.
template <class Change>
Matrix map_tensors(Matrix matrix, Change change) {
  for_each_tensor(matrix, [&](Tensor& tensor) { tensor = change(tensor); });
  return matrix;
}

// Rows [begin, begin + count) with their scales. Views.
Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t count);

}  // namespace braid
