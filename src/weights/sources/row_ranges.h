// Rows of stored tensors: concatenated, reordered, cut to a shard.
#pragma once

#include <memory>
#include <vector>

#include "comm/group.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"
#include "weights/upload.h"

namespace braid {

// Stored tensors whose rows, joined and each reordered, are those of one of ours.
struct StoredRows {
  std::vector<std::shared_ptr<const StoredTensor>> tensors = {};
  RowOrder order = {};
};

// Neighbouring rows of one stored tensor, and several such ranges one after another.
struct RowRange {
  std::shared_ptr<const StoredTensor> stored;
  Share rows;
};
using RowRanges = std::vector<RowRange>;

// All rows of a stored tensor.
RowRange all_rows(std::shared_ptr<const StoredTensor> stored);

// The runs of stored rows, of `rows`, of which ours are made in this order.
std::vector<Share> runs_in(const RowOrder& order, std::int64_t rows);

// Where the given rows of ours are stored, in order.
RowRanges ranges_of(const StoredRows& from, const std::vector<Share>& rows);

// The total number of rows or columns in the shares.
std::int64_t total_count(const std::vector<Share>& shares);

// How many rows of a width hold so many numbers; at least one.
std::int64_t rows_at_once(std::int64_t numbers, std::int64_t width);

// The ranges cut into shorter ones, each of about so many numbers: by default, a few megabytes.
RowRanges cut(const RowRanges& ranges, std::int64_t numbers = 1 << 19);

// The bytes of a range's rows in the file; the whole tensor for blocks without rows.
struct Bytes {
  std::uint64_t begin, size;
};
Bytes bytes_of(const RowRange& range);

// The rows of one range in the mapped file, which are not coded, without a copy. Reads them ahead
// into memory.
Tensor view_of(const RowRange& range);
// The same of codes, without their scales.
Tensor codes_in_place(const RowRange& range);
// The same as bytes [rows, bytes per row], whatever they encode.
Tensor bytes_in_place(const RowRange& range);
// The same as floating-point numbers, decoded if they are coded.
Tensor numbers_of(const RowRange& range);
// All numbers of a stored tensor, coded or not, aligned: in place if they may be used there.
Tensor numbers_of(const StoredTensor& stored);

// Bytes taken from files.
struct BytesRead {
  std::int64_t all = 0;
  std::int64_t strided = 0;  // those of columns, which are scattered row by row

  BytesRead& operator+=(const BytesRead& more);
  bool operator==(const BytesRead&) const = default;
};

// The runs of a tensor along a dim, concatenated; the tensor itself if no runs are named.
Tensor taken(const Tensor& x, std::int64_t dim, const std::vector<Share>& runs);
// The same, of columns, into `target`, which may have another dtype.
BytesRead copy_columns(const Tensor& target, const Tensor& source,
                       const std::vector<Share>& columns);

struct Assembled {
  Tensor tensor;
  BytesRead read;
};

// One new tensor of the ranges' rows and these columns of them, converted on the way; of bytes as
// bytes_in_place() has them if `dtype` is kByte. File pages that were read are released, so nothing
// is in memory twice.
Assembled assemble(const RowRanges& ranges, const std::vector<Share>& columns, at::ScalarType dtype,
                   const Target& target = at::kCPU);

}  // namespace braid
