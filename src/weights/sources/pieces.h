// Builds one of our tensors from stored ones: concatenated row-wise, reordered, cut to a share.
#pragma once

#include <vector>

#include "comm/group.h"
#include "weights/files/checkpoint.h"
#include "weights/names.h"
#include "weights/upload.h"

namespace braid {

// Rows of one stored tensor.
struct Piece {
  const StoredTensor* stored;
  Share rows;
};

// What a rank needs of a tensor of `shape`: runs of rows and of columns, each in order.
struct Wanted {
  std::vector<Share> rows, columns;
};

// The runs of stored rows, of `rows`, of which ours are made in this order.
std::vector<Share> runs_in(const Order& order, std::int64_t rows);

// The pieces, in order, that hold the wanted rows of the stored tensors' rows joined (and
// reordered).
std::vector<Piece> pieces_of(const std::vector<const StoredTensor*>& stored, const Order& order,
                             const std::vector<Share>& rows);

// The total number of rows or columns in the shares.
std::int64_t total_count(const std::vector<Share>& shares);

// The pieces cut into runs of rows, each of about so many numbers: by default, a few megabytes.
std::vector<Piece> cut(const std::vector<Piece>& pieces, std::int64_t numbers = 1 << 19);

// The bytes of a piece's rows in the file; the whole tensor for blocks without rows.
struct Bytes {
  std::uint64_t begin, size;
};
Bytes bytes_of(const Piece& piece);

// The rows of one piece in the mapped file, without a copy. Reads them ahead into memory.
Tensor view_of(const Piece& piece);
// The same as floating-point numbers, decoded if they are coded.
Tensor numbers_of(const Piece& piece);

// Bytes taken from files.
struct BytesRead {
  std::int64_t all = 0;
  std::int64_t strided = 0;  // those of columns, which are scattered row by row

  BytesRead& operator+=(const BytesRead& more);
  bool operator==(const BytesRead&) const = default;
};

// Copies the wanted columns of `source`, concatenated; all columns if `columns` is empty.
BytesRead copy_columns(const Tensor& target, const Tensor& source,
                       const std::vector<Share>& columns);

struct Assembled {
  Tensor tensor;
  BytesRead read;
};

// One new tensor of the pieces' rows and the wanted columns, converted on the way. File pages that
// were read are released, so nothing is in memory twice.
Assembled assemble(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                   at::ScalarType dtype, const Target& target = at::kCPU);

}  // namespace braid
