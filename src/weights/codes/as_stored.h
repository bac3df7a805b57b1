// Weights kept in memory as stored, in blocks, in 8 bits with scales, or in packed forms: what of
// them a shard holds, and the numbers they decode to.
#pragma once

#include "weights/matrix.h"
#include "weights/sources/row_ranges.h"

namespace braid {

// Whether a matrix of these rows may be kept as stored: all have one coding and at most one scale
// per row, or are packed with nothing that belongs to the columns of one tensor alone.
bool can_stay_as_stored(const StoredRows& from);
// The same of int8 codes whose neighbours were rotated together, as many in all of them.
bool can_stay_rotated(const StoredRows& from);

// The columns of whole groups that contain the given ones; and these among them, none: all.
struct WholeGroups {
  std::vector<Share> columns, picked;
};
WholeGroups whole_groups(const std::vector<Share>& columns, std::int64_t group);

// One float32 factor per row of ranges that have at most one each; ones where there is none.
Tensor row_scales(const RowRanges& ranges);

// The stored tensor of a packed range, where it holds its rows.
RowRange packed_range(const RowRange& range, std::size_t tensor);
// The numbers of a packed range in float32, smoothing and low-rank product included.
Tensor packed_numbers(const RowRange& range);

// The reference definition: the numbers that the values of `matrix`, which has a coding, stand for,
// rounded to `dtype`.
Tensor decoded(const Matrix& matrix, at::ScalarType dtype);

// Tokens x [M C] at their places in the whole groups of columns that `matrix` keeps; zeros at the
// others, so that groups of rotated numbers which ranks share add up. x itself if all are kept.
Tensor in_whole_groups(const Tensor& x_MC, const Matrix& matrix);

}  // namespace braid
