#include "weights/codes/as_stored.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "weights/codes/blocks.h"
#include "weights/codes/int8.h"
#include "weights/codes/rotation.h"

namespace braid {
namespace {

// A row has at most one.
bool has_row_scales(const StoredTensor& stored) {
  const auto* const scales = stored.scales.get();
  return !scales || scales->entry.shape.empty() ||
         (scales->entry.shape.back() == 1 && scales->arrangement != Arrangement::kSquares);
}

bool can_stay(const StoredTensor& stored, const StoredTensor& first) {
  const auto& entry = stored.entry;
  return entry.shape.size() == 2 && entry.type == first.entry.type && has_row_scales(stored) &&
         !stored.rotated_together && !stored.packed &&
         (is_float8(entry.type) || (is_of_blocks(entry.type) && !is_float4(entry.type)));
}

// Tensors that are of one matrix's columns cannot be joined with another's by rows.
bool can_stay_packed(const StoredRows& from) {
  const auto& first = from.tensors.front()->packed;
  const bool may_be_joined = first && !first->form->find(MatrixTensor::kSmoothing) &&
                             !first->form->find(MatrixTensor::kDown);
  return first && (may_be_joined || from.tensors.size() == 1) &&
         std::all_of(from.tensors.begin(), from.tensors.end(), [&](const auto& stored) {
           return stored->packed && stored->packed->form == first->form &&
                  stored->entry.shape.size() == 2;
         });
}

// The numbers of blocks or float8, without scales.
Tensor numbers_of_bytes(const Tensor& bytes, ElementType type) {
  if (!is_of_blocks(type)) {
    const bool is_e4m3 = type == ElementType::kFloat8E4M3;
    return bytes.view(is_e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2).to(at::kFloat);
  }
  const auto block = block_of(type);
  const auto blocks = bytes.numel() / block.bytes;
  const auto numbers = at::empty({blocks * block.numbers}, at::kFloat);
  decode_blocks(type, bytes.const_data_ptr<std::uint8_t>(), blocks,
                numbers.mutable_data_ptr<float>());
  return numbers.view({bytes.size(0), -1});
}

Tensor scaled_numbers(const Matrix& matrix) {
  const auto bytes = matrix.values_NC.cpu().contiguous();
  const auto numbers = numbers_of_bytes(bytes, matrix.coding->type);
  return matrix.scales_N1.defined() ? numbers * matrix.scales_N1.cpu() : numbers;
}

Tensor rotated_numbers(const Matrix& matrix) {
  const auto codes = matrix.values_NC.view(at::kChar);
  return rotated(codes.to(at::kFloat) * matrix.scales_N1, matrix.coding->rotated_together);
}

}  // namespace

bool can_stay_as_stored(const StoredRows& from) {
  const auto& first = *from.tensors.front();
  return can_stay_packed(from) ||
         std::all_of(from.tensors.begin(), from.tensors.end(),
                     [&](const auto& stored) { return can_stay(*stored, first); });
}

bool can_stay_rotated(const StoredRows& from) {
  const auto together = from.tensors.front()->rotated_together;
  return together > 0 &&
         std::all_of(from.tensors.begin(), from.tensors.end(), [&](const auto& stored) {
           return stored->entry.type == ElementType::kInt8 && stored->entry.shape.size() == 2 &&
                  stored->rotated_together == together && stored->scales && has_row_scales(*stored);
         });
}

WholeGroups whole_groups(const std::vector<Share>& columns, std::int64_t group) {
  WholeGroups whole;
  std::int64_t at = 0;  // position among the kept groups' columns
  bool is_exact = true;
  for (const auto& run : columns) {
    const auto begin = run.begin / group * group;
    const auto count = (run.begin + run.count + group - 1) / group * group - begin;
    whole.columns.push_back({.begin = begin, .count = count});
    whole.picked.push_back({.begin = at + run.begin - begin, .count = run.count});
    at += count;
    is_exact = is_exact && count == run.count;
  }
  if (is_exact) whole.picked.clear();
  return whole;
}

Tensor row_scales(const RowRanges& ranges) {
  std::vector<Tensor> scales;
  for (const auto& range : ranges) {
    const auto own = range.stored->scales ? numbers_of(scales_of(range)).to(at::kFloat)
                                          : at::ones({}, at::kFloat);
    scales.push_back(own.dim() == 0 ? own.expand({range.rows.count, 1}) : own);
  }
  return at::cat(scales);
}

RowRange packed_range(const RowRange& range, std::size_t tensor) {
  const auto& packed = *range.stored->packed;
  const bool has_rows = cell_of(packed.form->tensors[tensor].which).rows > 0;
  const auto& stored = packed.tensors[tensor];
  return has_rows ? RowRange{stored, range.rows} : all_rows(stored);
}

Tensor packed_numbers(const RowRange& range) {
  const auto* const form = range.stored->packed->form;
  Matrix matrix{.coding = std::make_shared<const QuantFormat>(
                    QuantFormat{.type = range.stored->entry.type,
                                .inputs = range.stored->entry.shape[1],
                                .columns = {},
                                .packed = form})};
  for (std::size_t i = 0; i < form->tensors.size(); ++i)
    tensor_of(matrix, form->tensors[i].which) = view_of(packed_range(range, i));
  return dequantize(matrix, at::kFloat);
}

// The host decodes, except what was rotated. Tensors of the meta device have sizes only.
Tensor decoded(const Matrix& matrix, at::ScalarType dtype) {
  const auto& values = matrix.values_NC;
  if (values.is_meta())
    return at::empty({values.size(0), matrix.inputs()}, values.options().dtype(dtype));
  const auto& coding = *matrix.coding;
  const auto numbers = coding.packed         ? coding.packed->decode(matrix)
                       : matrix.is_rotated() ? rotated_numbers(matrix)
                                             : scaled_numbers(matrix);
  return taken(numbers, 1, coding.columns).to(matrix.values_NC.device()).to(dtype);
}

Tensor in_whole_groups(const Tensor& x_MC, const Matrix& matrix) {
  if (!matrix.is_rotated() || matrix.coding->columns.empty()) return x_MC;
  const auto whole = x_MC.new_zeros({x_MC.size(0), matrix.values_NC.size(1)});
  std::int64_t at = 0;
  for (const auto& run : matrix.coding->columns) {
    whole.narrow(1, run.begin, run.count).copy_(x_MC.narrow(1, at, run.count));
    at += run.count;
  }
  return whole;
}

}  // namespace braid
