#include "weights/codes/int8_load.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "weights/codes/int8.h"

namespace braid {
namespace {

constexpr std::int64_t kNumbersCodedAtOnce = 1 << 19;

std::int64_t width_of(const std::vector<Share>& columns, std::int64_t all) {
  if (columns.empty()) return all;
  std::int64_t width = 0;
  for (const auto& share : columns) width += share.count;
  return width;
}

void keep(const Tensor& codes, const std::vector<Share>& columns, Tensor target) {
  if (columns.empty()) {
    target.copy_(codes);
    return;
  }
  std::int64_t column = 0;
  for (const auto& share : columns) {
    target.narrow(1, column, share.count).copy_(codes.narrow(1, share.begin, share.count));
    column += share.count;
  }
}

void release(const Piece& piece) {
  const auto& entry = piece.stored->entry;
  const auto row_bytes = entry.size / std::uint64_t(entry.shape[0]);
  piece.stored->file->release(entry.begin + std::uint64_t(piece.rows.begin) * row_bytes,
                              std::uint64_t(piece.rows.count) * row_bytes);
}

// The pieces cut into runs of rows that are handled at once.
std::vector<Piece> cut(const std::vector<Piece>& pieces) {
  std::vector<Piece> runs;
  for (const auto& piece : pieces) {
    const auto at_once = std::max<std::int64_t>(
        1, kNumbersCodedAtOnce / std::max<std::int64_t>(1, piece.stored->entry.shape[1]));
    for (std::int64_t row = 0; row < piece.rows.count; row += at_once)
      runs.push_back(
          {piece.stored,
           {.begin = piece.rows.begin + row, .count = std::min(at_once, piece.rows.count - row)}});
  }
  return runs;
}

}  // namespace

LoadedMatrix quantize_pieces(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                             at::ScalarType dtype, Quantize form) {
  std::int64_t rows = 0;
  for (const auto& piece : pieces) rows += piece.rows.count;
  const auto width = width_of(columns, pieces.front().stored->entry.shape[1]);
  const auto scale_dtype = form == Quantize::kInt8V1 ? dtype : at::kFloat;
  Matrix whole{.form = form,
               .values_NC = at::empty({rows, width}, at::kChar),
               .scales_N1 = at::empty({rows, 1}, scale_dtype)};
  std::int64_t row = 0;
  BytesRead read;
  for (const auto& run : cut(pieces)) {
    const auto numbers = view_of(run);
    read.all += numbers.numel() * numbers.element_size();
    const auto quantised = quantize_rows(numbers.to(dtype), form);
    const auto target = rows_of(whole, row, run.rows.count);
    keep(quantised.values_NC, columns, target.values_NC);
    Tensor(target.scales_N1).copy_(quantised.scales_N1);
    release(run);
    row += run.rows.count;
  }
  return {.matrix = whole, .read = read};
}

Matrix share_of_columns(const Matrix& matrix, const std::vector<Share>& columns) {
  if (columns.empty()) return matrix;
  auto share = matrix;
  share.values_NC = matrix.values_NC.new_empty({matrix.values_NC.size(0), width_of(columns, 0)});
  keep(matrix.values_NC, columns, share.values_NC);
  return share;
}

LoadedMatrix load_codes(const std::vector<Piece>& codes, const std::vector<Piece>& scales,
                        const std::vector<Share>& columns, Quantize form) {
  const auto kept = assemble(scales, {}, scales.front().stored->dtype());
  LoadedMatrix loaded{.matrix = {.form = form, .scales_N1 = kept.tensor}, .read = kept.read};
  if (codes.size() == 1 && columns.empty()) {
    loaded.matrix.values_NC = view_of(codes.front());
    loaded.read.all += loaded.matrix.values_NC.numel();
    return loaded;
  }
  const auto joined = assemble(codes, columns, at::kChar);
  loaded.matrix.values_NC = joined.tensor;
  loaded.read += joined.read;
  return loaded;
}

}  // namespace braid
