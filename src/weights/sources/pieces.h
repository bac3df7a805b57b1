// From stored tensors to one tensor of ours: joined row-wise, reordered, cut to a share.
#pragma once

#include <vector>

#include "comm/group.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

// Rows of one stored tensor.
struct Piece {
  const StoredTensor* stored;
  Share rows;
};

// What a rank wants of a tensor of `shape`: runs of rows and of columns, each in order.
struct Wanted {
  std::vector<Share> rows, columns;
};

// The pieces, in order, that hold the wanted rows of the stored tensors' rows joined (and
// reordered).
std::vector<Piece> pieces_of(const std::vector<const StoredTensor*>& stored, Order order,
                             const std::vector<Share>& rows);

// How many rows, or columns, the shares have together.
std::int64_t total_count(const std::vector<Share>& shares);

// The pieces cut into runs of rows of which each is few megabytes as numbers.
std::vector<Piece> cut(const std::vector<Piece>& pieces);

// Where the rows of a piece lie in the file; of blocks without rows the whole tensor.
struct Bytes {
  std::uint64_t begin, size;
};
Bytes bytes_of(const Piece& piece);

// The rows of one piece in the mapped file; no copy. Reads them into memory ahead of their use.
Tensor view_of(const Piece& piece);
// The same as floating-point numbers, decoded where they are coded.
Tensor numbers_of(const Piece& piece);

// What was taken out of files.
struct BytesRead {
  std::int64_t all = 0;
  std::int64_t strided = 0;  // of `all`, those of columns: apart from each other, row by row

  BytesRead& operator+=(const BytesRead& more);
  bool operator==(const BytesRead&) const = default;
};

// The wanted columns of `source`, one run after the other; all of them if there are none.
BytesRead copy_columns(const Tensor& target, const Tensor& source,
                       const std::vector<Share>& columns);

struct Assembled {
  Tensor tensor;
  BytesRead read;
};

// One new tensor of the pieces' rows and the wanted columns, converted on the way. The pages that
// were read are given back, so that nothing is in memory twice.
Assembled assemble(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                   const at::TensorOptions& options);

}  // namespace braid
