#include "weights/sources/tensor_plan.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/codes/as_stored.h"
#include "weights/codes/float8.h"
#include "weights/sources/identity.h"
#include "weights/sources/plan_reads.h"

namespace braid {
namespace {

using Take = TensorPlan::Take;

std::vector<std::int64_t> with_extents(std::vector<std::int64_t> shape, std::int64_t rows,
                                       const std::vector<Share>& columns) {
  if (!shape.empty()) shape[0] = rows;
  if (!columns.empty()) shape[1] = total_count(columns);
  return shape;
}

bool has_row_scales(const TensorPlan& plan) {
  const auto& tensors = plan.stored().tensors;
  return plan.form == Quantize::kFloat8 ||
         std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& stored) { return stored->scales != nullptr; });
}

const PackedTensors* packed_of(const TensorPlan& plan) {
  return plan.take == Take::kStored ? plan.stored().tensors.front()->packed.get() : nullptr;
}

std::vector<KeptTensor> kept_packed(const PackedTensors& packed, at::ScalarType dtype) {
  std::vector<KeptTensor> kept;
  for (std::size_t i = 0; i < packed.tensors.size(); ++i) {
    const auto& [name, which, columns] = packed.form->tensors[i];
    const auto& shape = packed.tensors[i]->entry.shape;
    kept.push_back({.which = which,
                    .dtype = multiplies_tokens(which) ? dtype : packed.tensors[i]->dtype(),
                    .cell = cell_of(which, columns),
                    .own_rows = shape[0],
                    .own_columns = shape[1]});
  }
  return kept;
}

// What is never cut: a block, or the codes of numbers that were rotated together.
Block undivided(const StoredTensor& stored) {
  const auto together = stored.rotated_together;
  return together > 0 ? Block{.numbers = together, .bytes = together} : block_of(stored.entry.type);
}

// Blocks, float8 or rotated codes, and the scales of their rows.
std::vector<KeptTensor> kept_blocks(const TensorPlan& plan) {
  const auto block = undivided(*plan.stored().tensors.front());
  std::vector<KeptTensor> kept = {
      {.dtype = at::kByte, .cell = {.columns = block.numbers, .elements = block.bytes}}};
  if (has_row_scales(plan))
    kept.push_back({.which = MatrixTensor::kScales,
                    .dtype = at::kFloat,
                    .cell = {.columns = 0},
                    .own_columns = 1});
  return kept;
}

std::int64_t elements_of(const KeptTensor& tensor, std::int64_t columns) {
  return columns / tensor.cell.columns * tensor.cell.elements;
}

std::int64_t bytes_of(const StoredPart& part) {
  std::int64_t bytes = 0;
  for (const auto& range : part.ranges) {
    const auto element = part.dtype == at::kByte ? at::kByte : range.stored->dtype();
    bytes += part.columns.empty() ? std::int64_t(bytes_of(range).size)
                                  : range.rows.count * total_count(part.columns) *
                                        std::int64_t(c10::elementSize(element));
  }
  return bytes;
}

// The bytes that are read of these rows. Quantized rows are decoded whole.
std::int64_t bytes_of(const StoredRows& from, const Shard& shard) {
  std::int64_t bytes = 0;
  for (const auto& range : ranges_of(from, shard.rows)) {
    const auto& columns = range.stored->is_quantized() ? std::vector<Share>() : shard.columns;
    const auto shape = with_extents(range.stored->entry.shape, range.rows.count, columns);
    const auto block = block_of(range.stored->entry.type);
    bytes += range.stored->packed ? std::int64_t(bytes_of(range).size)
                                  : c10::multiply_integers(shape) * block.bytes / block.numbers;
  }
  return bytes;
}

std::string identity_of(const StoredRows& from, const Shard& shard) {
  return identity_of(ranges_of(from, shard.rows)) + identity_of(shard.columns);
}

std::string identity_of_source(const TensorPlan& plan, const Shard& shard) {
  if (!plan.is_drawn()) return identity_of(plan.stored(), shard);
  const auto& drawn = std::get<DrawnRows>(plan.from);
  return text_of(drawn.values->identity_of(drawn.path, plan.shape), " rows",
                 identity_of(shard.rows), " ", identity_of(shard.columns));
}

std::string identity_of_stored(const TensorPlan& plan) {
  const auto words = identity_of(plan.stored(), plan.shard);
  if (plan.take == Take::kCodes)
    return words + " scales " + identity_of(plan.scales, {.rows = plan.shard.rows});
  return words + (packed_of(plan) ? text_of(" as stored for ", plan.dtype) : " as stored");
}

std::string identity_of_numbers(const TensorPlan& plan) {
  const auto as = plan.form == Quantize::kNone ? text_of(" as ", plan.dtype)
                                               : " " + identity_of(plan.form, plan.dtype);
  if (plan.changes.is_empty()) return identity_of_source(plan, plan.shard) + as;
  const auto read = shard_read(plan), cut = shard_cut(plan);
  return text_of(identity_of_source(plan, read), " at rows", identity_of(read.rows), " changed by ",
                 plan.changes.identity(), " rows", identity_of(cut.rows), " ",
                 identity_of(cut.columns), as);
}

}  // namespace

std::vector<KeptTensor> kept_tensors(Quantize form, at::ScalarType dtype) {
  if (form == Quantize::kNone) return {{.dtype = dtype}};
  return {{.dtype = type_of_codes(form)},
          {.which = MatrixTensor::kScales,
           .dtype = type_of_scales(form, dtype),
           .cell = {.columns = 0},
           .own_columns = 1}};
}

at::ScalarType dtype_of_scales(const StoredRows& scales) {
  auto dtype = scales.tensors.front()->dtype();
  for (const auto& stored : scales.tensors) dtype = c10::promoteTypes(dtype, stored->dtype());
  return dtype;
}

std::vector<KeptTensor> kept_tensors(const TensorPlan& plan) {
  switch (plan.take) {
    case Take::kNumbers:
      break;
    case Take::kCodes:
      return kept_tensors(plan.form, dtype_of_scales(plan.scales));
    case Take::kStored:
      return packed_of(plan) ? kept_packed(*packed_of(plan), plan.dtype) : kept_blocks(plan);
  }
  return kept_tensors(plan.form, plan.dtype);
}

std::int64_t group_of(const std::vector<KeptTensor>& kept) {
  std::int64_t most = 1;
  for (const auto& tensor : kept) most = std::max(most, tensor.cell.columns);
  return most;
}

std::vector<KeptExtents> extents_of(const std::vector<KeptTensor>& kept, std::int64_t inputs,
                                    std::int64_t rows, const std::vector<Share>& columns) {
  const auto exact = columns.empty() ? inputs : total_count(columns);
  const auto group = group_of(kept);
  const auto whole = columns.empty() ? inputs : total_count(whole_groups(columns, group).columns);
  std::vector<KeptExtents> extents;
  for (const auto& tensor : kept)
    extents.push_back({.rows = tensor.cell.rows > 0 ? rows : tensor.own_rows,
                       .columns = tensor.cell.columns == 0          ? tensor.own_columns
                                  : multiplies_tokens(tensor.which) ? exact
                                                                    : elements_of(tensor, whole)});
  return extents;
}

std::int64_t bytes_of(const std::vector<KeptTensor>& kept, std::int64_t inputs, std::int64_t rows,
                      const std::vector<Share>& columns, std::int64_t alignment) {
  const auto extents = extents_of(kept, inputs, rows, columns);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < kept.size(); ++i)
    bytes += round_up(
        extents[i].rows * extents[i].columns * std::int64_t(c10::elementSize(kept[i].dtype)),
        alignment);
  return bytes;
}

std::vector<TensorForm> forms_of(const TensorPlan& plan) {
  const auto kept = kept_tensors(plan);
  const auto rows = total_count(plan.shard.rows);
  const bool are_numbers = plan.take == Take::kNumbers && plan.form == Quantize::kNone;
  if (are_numbers) return {{plan.dtype, with_extents(plan.shape, rows, plan.shard.columns)}};
  const auto extents = extents_of(kept, plan.shape[1], rows, plan.shard.columns);
  std::vector<TensorForm> forms;
  for (std::size_t i = 0; i < kept.size(); ++i)
    forms.push_back({kept[i].dtype, {extents[i].rows, extents[i].columns}});
  return forms;
}

std::string identity_of(const TensorPlan& plan) {
  const auto words =
      plan.take == Take::kNumbers ? identity_of_numbers(plan) : identity_of_stored(plan);
  return plan.stored_columns > 0 ? words + text_of(" widened to ", plan.shape[1]) : words;
}

std::vector<StoredTensor> stored_by(const TensorPlan& plan) {
  std::vector<StoredTensor> all;
  if (!plan.is_drawn())
    for (const auto* const rows : {&plan.stored(), &plan.scales})
      for (const auto& stored : rows->tensors) all.push_back(*stored);
  all.insert(all.end(), plan.changes.stored.begin(), plan.changes.stored.end());
  return all;
}

std::int64_t bytes_read_by(const TensorPlan& plan) {
  if (plan.is_drawn()) return 0;
  if (plan.take == Take::kNumbers) return bytes_of(plan.stored(), shard_read(plan));
  std::int64_t bytes = 0;
  for (const auto& part : stored_parts(plan))
    if (part.take == StoredPart::Take::kElements) bytes += bytes_of(part);
  return bytes;
}

bool is_packed(const TensorPlan& plan) { return packed_of(plan) != nullptr; }

bool is_rotated(const TensorPlan& plan) {
  return plan.take == Take::kStored && plan.stored().tensors.front()->rotated_together > 0;
}

std::shared_ptr<const QuantFormat> coding_of(const TensorPlan& plan) {
  const bool is_of_form = plan.form != Quantize::kNone && !is_rotated(plan);
  if (is_of_form || plan.take != Take::kStored) return coding_of(plan.form);
  const auto& first = *plan.stored().tensors.front();
  const auto* const packed = packed_of(plan);
  const auto& columns = plan.shard.columns;
  return std::make_shared<const QuantFormat>(
      QuantFormat{.type = first.entry.type,
                  .inputs = columns.empty() ? plan.shape[1] : total_count(columns),
                  .columns = whole_groups(columns, group_of(kept_tensors(plan))).picked,
                  .packed = packed ? packed->form : nullptr,
                  .rotated_together = first.rotated_together});
}

bool is_in_place(const TensorPlan& plan) {
  if (plan.is_drawn() || plan.take != Take::kNumbers || plan.form != Quantize::kNone) return false;
  if (!plan.changes.is_empty() || plan.stored_columns > 0 || !plan.shard.columns.empty())
    return false;
  const auto ranges = ranges_of(plan.stored(), plan.shard.rows);
  const auto& stored = *ranges.front().stored;
  return ranges.size() == 1 && !stored.is_quantized() && stored.is_aligned() &&
         stored.dtype() == plan.dtype;
}

}  // namespace braid
