#include "weights/sources/pieces.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

std::int64_t rows_of(const StoredTensor& stored) {
  return stored.entry.shape.empty() ? 1 : stored.entry.shape[0];
}

std::int64_t copy_counted(const Tensor& target, const Tensor& source) {
  target.copy_(source);
  return source.numel() * source.element_size();
}

BytesRead copy_columns(const Tensor& target, const Tensor& source,
                       const std::vector<Share>& columns) {
  if (columns.empty()) return {.all = copy_counted(target, source)};
  std::int64_t column = 0, bytes = 0;
  for (const auto& share : columns) {
    bytes += copy_counted(target.narrow(1, column, share.count),
                          source.narrow(1, share.begin, share.count));
    column += share.count;
  }
  return {.all = bytes, .strided = bytes};
}

}  // namespace

std::int64_t total_count(const std::vector<Share>& shares) {
  std::int64_t count = 0;
  for (const auto& share : shares) count += share.count;
  return count;
}

BytesRead& BytesRead::operator+=(const BytesRead& more) {
  all += more.all;
  strided += more.strided;
  return *this;
}

std::vector<Piece> pieces_of(const std::vector<const StoredTensor*>& stored, Order order,
                             const std::vector<Share>& rows) {
  std::vector<Piece> whole;
  for (const auto* one : stored) {
    const auto count = rows_of(*one), half = count / 2;
    if (order == Order::kSwapHalves) {
      whole.push_back({one, {.begin = half, .count = count - half}});
      whole.push_back({one, {.begin = 0, .count = half}});
    } else {
      whole.push_back({one, {.begin = 0, .count = count}});
    }
  }
  std::vector<Piece> pieces;
  for (const auto& share : rows) {
    std::int64_t at = 0;  // the row of the whole at which the next piece begins
    for (const auto& piece : whole) {
      const auto begin = std::max(share.begin, at);
      const auto end = std::min(share.begin + share.count, at + piece.rows.count);
      if (begin < end)
        pieces.push_back(
            {piece.stored, {.begin = piece.rows.begin + begin - at, .count = end - begin}});
      at += piece.rows.count;
    }
  }
  return pieces;
}

Assembled assemble(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                   const at::TensorOptions& options) {
  auto shape = pieces.front().stored->entry.shape;
  const bool is_scalar = shape.empty();  // has one row
  if (is_scalar) shape = {1};
  shape[0] = 0;
  for (const auto& piece : pieces) shape[0] += piece.rows.count;
  if (!columns.empty()) shape[1] = total_count(columns);
  const auto whole = at::empty(shape, options);
  BytesRead read;
  std::int64_t row = 0;
  for (const auto& piece : pieces) {
    read += copy_columns(whole.narrow(0, row, piece.rows.count), view_of(piece), columns);
    row += piece.rows.count;
  }
  for (const auto& piece : pieces)
    piece.stored->file->release(piece.stored->entry.begin, piece.stored->entry.size);
  return {.tensor = is_scalar ? whole.squeeze(0) : whole, .read = read};
}

Tensor view_of(const Piece& piece) {
  const auto& entry = piece.stored->entry;
  const auto row_bytes =
      entry.size / std::uint64_t(std::max<std::int64_t>(1, rows_of(*piece.stored)));
  piece.stored->file->prefetch(entry.begin + std::uint64_t(piece.rows.begin) * row_bytes,
                               std::uint64_t(piece.rows.count) * row_bytes);
  const auto view = piece.stored->view();
  return view.dim() == 0 ? view : view.narrow(0, piece.rows.begin, piece.rows.count);
}

}  // namespace braid
