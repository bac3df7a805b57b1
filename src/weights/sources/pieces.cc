#include "weights/sources/pieces.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "weights/codes/blocks.h"
#include "weights/codes/tiles.h"

namespace braid {
namespace {

std::int64_t rows_of(const StoredTensor& stored) {
  return stored.entry.shape.empty() ? 1 : stored.entry.shape[0];
}

// Quantized pieces are decoded in whole rows.
BytesRead copy_piece(const Tensor& target, const Piece& piece, const std::vector<Share>& columns,
                     Upload* upload) {
  if (!piece.stored->is_quantized()) {
    const auto view = view_of(piece);
    if (!upload || !columns.empty() || view.scalar_type() != target.scalar_type())
      return copy_columns(target, view, columns);
    upload->copy(target, view);
    return {.all = std::int64_t(view.nbytes())};
  }
  std::int64_t row = 0;
  for (const auto& run : cut({piece})) {
    copy_columns(target.narrow(0, row, run.rows.count), numbers_of(run), columns);
    row += run.rows.count;
  }
  return {.all = std::int64_t(bytes_of(piece).size)};
}

}  // namespace

BytesRead copy_columns(const Tensor& target, const Tensor& source,
                       const std::vector<Share>& columns) {
  const auto bytes = target.numel() * source.element_size();
  if (columns.empty()) {
    target.copy_(source);
    return {.all = bytes};
  }
  std::int64_t column = 0;
  for (const auto& share : columns) {
    target.narrow(1, column, share.count).copy_(source.narrow(1, share.begin, share.count));
    column += share.count;
  }
  return {.all = bytes, .strided = bytes};
}

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

std::vector<Share> runs_in(const Order& order, std::int64_t rows) {
  switch (order.way) {
    case Order::kSwapHalves:
      return {{.begin = rows / 2, .count = rows - rows / 2}, {.begin = 0, .count = rows / 2}};
    case Order::kDeinterleave: {
      std::vector<Share> runs;
      for (std::int64_t head = 0; head < rows; head += order.head_width)
        for (const std::int64_t first : {0, 1})
          for (auto row = first; row < order.head_width; row += 2)
            runs.push_back({.begin = head + row, .count = 1});
      return runs;
    }
    case Order::kFlattened:
    case Order::kAsStored:
      break;
  }
  return {{.begin = 0, .count = rows}};
}

std::vector<Piece> pieces_of(const std::vector<const StoredTensor*>& stored, const Order& order,
                             const std::vector<Share>& rows) {
  std::vector<Piece> whole;
  for (const auto* one : stored)
    for (const auto& run : runs_in(order, rows_of(*one))) whole.push_back({one, run});
  std::vector<Piece> pieces;
  for (const auto& share : rows) {
    std::int64_t at = 0;  // the joined row where the next piece begins
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
                   at::ScalarType dtype, const Target& target) {
  auto shape = pieces.front().stored->entry.shape;
  const bool is_scalar = shape.empty();  // counts as one row
  if (is_scalar) shape = {1};
  shape[0] = 0;
  for (const auto& piece : pieces) shape[0] += piece.rows.count;
  if (!columns.empty()) shape[1] = total_count(columns);
  const auto whole = at::empty(shape, at::TensorOptions(dtype).device(target.device));
  BytesRead read;
  std::int64_t row = 0;
  for (const auto& piece : pieces) {
    read += copy_piece(whole.narrow(0, row, piece.rows.count), piece, columns, target.upload);
    row += piece.rows.count;
  }
  for (const auto& piece : pieces)
    piece.stored->file->release(piece.stored->entry.begin, piece.stored->entry.size);
  return {.tensor = is_scalar ? whole.squeeze(0) : whole, .read = read};
}

std::vector<Piece> cut(const std::vector<Piece>& pieces, std::int64_t numbers) {
  std::vector<Piece> runs;
  for (const auto& piece : pieces) {
    const at::IntArrayRef shape(piece.stored->entry.shape);
    const auto width = shape.size() < 2 ? 1 : c10::multiply_integers(shape.slice(1));
    const auto at_once = std::max<std::int64_t>(1, numbers / std::max<std::int64_t>(1, width));
    for (std::int64_t row = 0; row < piece.rows.count; row += at_once)
      runs.push_back(
          {piece.stored,
           {.begin = piece.rows.begin + row, .count = std::min(at_once, piece.rows.count - row)}});
  }
  return runs;
}

Bytes bytes_of(const Piece& piece) {
  const auto& entry = piece.stored->entry;
  if (entry.shape.size() < 2 && is_of_blocks(entry.type)) return {entry.begin, entry.size};
  if (piece.stored->arrangement == Arrangement::kTiles) return tiles_of(piece);
  const auto row = entry.size / std::uint64_t(std::max<std::int64_t>(1, rows_of(*piece.stored)));
  return {entry.begin + std::uint64_t(piece.rows.begin) * row,
          std::uint64_t(piece.rows.count) * row};
}

Tensor view_of(const Piece& piece) {
  const auto bytes = bytes_of(piece);
  piece.stored->file->prefetch(bytes.begin, bytes.size);
  const auto view = piece.stored->view();
  return view.dim() == 0 ? view : view.narrow(0, piece.rows.begin, piece.rows.count);
}

Tensor numbers_of(const Piece& piece) {
  return piece.stored->is_quantized() ? decoded(piece) : view_of(piece);
}

}  // namespace braid
