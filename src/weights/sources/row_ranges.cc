#include "weights/sources/row_ranges.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/codes/blocks.h"
#include "weights/codes/tiles.h"

namespace braid {
namespace {

std::int64_t rows_of(const StoredTensor& stored) {
  return stored.entry.shape.empty() ? 1 : stored.entry.shape[0];
}

// Quantized rows are decoded whole.
BytesRead copy_range(const Tensor& target, const RowRange& range, const std::vector<Share>& columns,
                     Upload* upload) {
  if (target.scalar_type() == at::kByte)
    return copy_columns(target, bytes_in_place(range), columns);
  if (!range.stored->is_quantized()) {
    const auto view = view_of(range);
    if (!upload || !columns.empty() || view.scalar_type() != target.scalar_type())
      return copy_columns(target, view, columns);
    upload->copy(target, view);
    return {.all = std::int64_t(view.nbytes())};
  }
  std::int64_t row = 0;
  for (const auto& run : cut({range})) {
    copy_columns(target.narrow(0, row, run.rows.count), numbers_of(run), columns);
    row += run.rows.count;
  }
  return {.all = std::int64_t(bytes_of(range).size)};
}

void copy_runs(const Tensor& target, const Tensor& source, std::int64_t dim,
               const std::vector<Share>& runs) {
  std::int64_t at = 0;
  for (const auto& run : runs) {
    target.narrow(dim, at, run.count).copy_(source.narrow(dim, run.begin, run.count));
    at += run.count;
  }
}

}  // namespace

Tensor taken(const Tensor& x, std::int64_t dim, const std::vector<Share>& runs) {
  if (runs.empty()) return x;
  auto shape = x.sizes().vec();
  shape[std::size_t(dim)] = total_count(runs);
  const auto some = x.new_empty(shape);
  copy_runs(some, x, dim, runs);
  return some;
}

BytesRead copy_columns(const Tensor& target, const Tensor& source,
                       const std::vector<Share>& columns) {
  const auto bytes = target.numel() * source.element_size();
  if (columns.empty()) {
    target.copy_(source);
    return {.all = bytes};
  }
  copy_runs(target, source, 1, columns);
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

std::vector<Share> runs_in(const RowOrder& order, std::int64_t rows) {
  switch (order.way) {
    case RowOrder::kSwapHalves:
      return {{.begin = rows / 2, .count = rows - rows / 2}, {.begin = 0, .count = rows / 2}};
    case RowOrder::kDeinterleave: {
      std::vector<Share> runs;
      for (std::int64_t head = 0; head < rows; head += order.head_width)
        for (const std::int64_t first : {0, 1})
          for (auto row = first; row < order.head_width; row += 2)
            runs.push_back({.begin = head + row, .count = 1});
      return runs;
    }
    case RowOrder::kFlattened:
    case RowOrder::kAsStored:
      break;
  }
  return {{.begin = 0, .count = rows}};
}

RowRange all_rows(std::shared_ptr<const StoredTensor> stored) {
  const Share rows{.begin = 0, .count = rows_of(*stored)};
  return {std::move(stored), rows};
}

RowRanges ranges_of(const StoredRows& from, const std::vector<Share>& rows) {
  RowRanges whole;
  for (const auto& stored : from.tensors)
    for (const auto& run : runs_in(from.order, rows_of(*stored))) whole.push_back({stored, run});
  RowRanges ranges;
  for (const auto& share : rows) {
    std::int64_t at = 0;  // the joined row where the next range begins
    for (const auto& range : whole) {
      const auto begin = std::max(share.begin, at);
      const auto end = std::min(share.begin + share.count, at + range.rows.count);
      if (begin < end)
        ranges.push_back(
            {range.stored, {.begin = range.rows.begin + begin - at, .count = end - begin}});
      at += range.rows.count;
    }
  }
  return ranges;
}

Assembled assemble(const RowRanges& ranges, const std::vector<Share>& columns, at::ScalarType dtype,
                   const Target& target) {
  const auto& first = ranges.front();
  auto shape = first.stored->entry.shape;
  const bool is_scalar = shape.empty();  // counts as one row
  if (is_scalar) shape = {1};
  if (dtype == at::kByte) shape = {0, std::int64_t(bytes_of(first).size) / first.rows.count};
  shape[0] = 0;
  for (const auto& range : ranges) shape[0] += range.rows.count;
  if (!columns.empty()) shape[1] = total_count(columns);
  const auto whole = at::empty(shape, at::TensorOptions(dtype).device(target.device));
  BytesRead read;
  std::int64_t row = 0;
  for (const auto& range : ranges) {
    read += copy_range(whole.narrow(0, row, range.rows.count), range, columns, target.upload);
    row += range.rows.count;
  }
  for (const auto& range : ranges)
    range.stored->file->release(range.stored->entry.begin, range.stored->entry.size);
  return {.tensor = is_scalar ? whole.squeeze(0) : whole, .read = read};
}

std::int64_t rows_at_once(std::int64_t numbers, std::int64_t width) {
  return std::max<std::int64_t>(1, numbers / std::max<std::int64_t>(1, width));
}

RowRanges cut(const RowRanges& ranges, std::int64_t numbers) {
  RowRanges runs;
  for (const auto& range : ranges) {
    const at::IntArrayRef shape(range.stored->entry.shape);
    const auto width = shape.size() < 2 ? 1 : c10::multiply_integers(shape.slice(1));
    const auto at_once = rows_at_once(numbers, width);
    for (std::int64_t row = 0; row < range.rows.count; row += at_once)
      runs.push_back(
          {range.stored,
           {.begin = range.rows.begin + row, .count = std::min(at_once, range.rows.count - row)}});
  }
  return runs;
}

Bytes bytes_of(const RowRange& range) {
  const auto& entry = range.stored->entry;
  if (entry.shape.size() < 2 && is_of_blocks(entry.type)) return {entry.begin, entry.size};
  if (range.stored->arrangement == Arrangement::kTiles) return tiles_of(range);
  const auto row = entry.size / std::uint64_t(std::max<std::int64_t>(1, rows_of(*range.stored)));
  return {entry.begin + std::uint64_t(range.rows.begin) * row,
          std::uint64_t(range.rows.count) * row};
}

Tensor view_of(const RowRange& range) {
  check(!range.stored->is_quantized(), "tensor '", range.stored->entry.name, "' is coded");
  return codes_in_place(range);
}

Tensor codes_in_place(const RowRange& range) {
  const auto bytes = bytes_of(range);
  range.stored->file->prefetch(bytes.begin, bytes.size);
  const auto view = range.stored->stored_view();
  return view.dim() == 0 ? view : view.narrow(0, range.rows.begin, range.rows.count);
}

// One row of bytes per row of the range.
Tensor bytes_in_place(const RowRange& range) {
  const auto [begin, size] = bytes_of(range);
  const auto keep = range.stored->file;
  keep->prefetch(begin, size);
  auto* const data = const_cast<std::byte*>(keep->bytes().data()) + begin;
  return at::from_blob(
      data, {range.rows.count, std::int64_t(size) / std::max<std::int64_t>(1, range.rows.count)},
      [keep](void*) {}, at::TensorOptions(at::kByte));
}

Tensor numbers_of(const RowRange& range) {
  return range.stored->is_quantized() ? decoded(range) : view_of(range);
}

Tensor numbers_of(const StoredTensor& stored) {
  if (stored.is_quantized()) return decoded(all_rows(std::make_shared<const StoredTensor>(stored)));
  return stored.is_aligned() ? stored.view() : stored.view().clone();
}

}  // namespace braid
