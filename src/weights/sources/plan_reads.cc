#include "weights/sources/plan_reads.h"

#include "weights/codes/as_stored.h"

namespace braid {
namespace {

using Take = TensorPlan::Take;

bool reads_all_columns(const TensorPlan& plan) {
  return plan.form != Quantize::kNone || plan.changes.need_all_columns();
}

// The elements that a tensor has for some columns of its matrix, which are whole groups of it.
std::vector<Share> elements_for(const KeptTensor& tensor, const std::vector<Share>& exact,
                                const std::vector<Share>& groups) {
  if (tensor.cell.columns == 0) return {};
  const auto [rows, columns, elements] = tensor.cell;
  std::vector<Share> runs;
  for (const auto& run : multiplies_tokens(tensor.which) ? exact : groups)
    runs.push_back(
        {.begin = run.begin / columns * elements, .count = run.count / columns * elements});
  return runs;
}

// The ranges of the `index`-th tensor of packed matrices whose rows are joined.
RowRanges packed_ranges(const RowRanges& ranges, const KeptTensor& tensor, std::size_t index) {
  if (tensor.cell.rows == 0) return {packed_range(ranges.front(), index)};
  RowRanges packed;
  for (const auto& range : ranges) packed.push_back(packed_range(range, index));
  return packed;
}

}  // namespace

Shard shard_read(const TensorPlan& plan) {
  auto read = plan.shard;
  if (reads_all_columns(plan)) read.columns.clear();
  if (plan.changes.need_all_rows()) read.rows = {{.begin = 0, .count = plan.shape[0]}};
  return read;
}

Shard shard_cut(const TensorPlan& plan) {
  return {.rows = plan.changes.need_all_rows() ? plan.shard.rows : std::vector<Share>(),
          .columns = reads_all_columns(plan) ? plan.shard.columns : std::vector<Share>()};
}

// Scales of codes are of whole rows: every share of the columns needs them all.
std::vector<StoredPart> stored_parts(const TensorPlan& plan) {
  const auto& [rows, columns] = plan.shard;
  const auto ranges = ranges_of(plan.stored(), rows);
  const auto kept = kept_tensors(plan);
  if (plan.take == Take::kCodes)
    return {
        {.ranges = ranges, .columns = columns, .dtype = kept[0].dtype},
        {.which = kept[1].which, .ranges = ranges_of(plan.scales, rows), .dtype = kept[1].dtype}};
  const bool is_packed = ranges.front().stored->packed != nullptr;
  const auto groups = whole_groups(columns, group_of(kept)).columns;
  std::vector<StoredPart> parts;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool are_row_scales = !is_packed && kept[i].which == MatrixTensor::kScales;
    parts.push_back(
        {.which = kept[i].which,
         .take = are_row_scales ? StoredPart::Take::kRowScales : StoredPart::Take::kElements,
         .ranges = is_packed ? packed_ranges(ranges, kept[i], i) : ranges,
         .columns = elements_for(kept[i], columns, groups),
         .dtype = kept[i].dtype});
  }
  return parts;
}

}  // namespace braid
